// The command line of Trigon: reads words, hands them to a verb, prints its answer. The answer
// goes to standard output in one piece, everything else to standard error.

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "call.hpp"
#include "interrupt.hpp"

namespace {

using namespace trigon;

std::string environment(const char* name) {
  const char* v = std::getenv(name);
  return v ? v : "";
}

Language locale_language() {
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    std::string v = environment(name);
    if (!v.empty()) return v.compare(0, 2, "zh") == 0 ? Language::chinese : Language::english;
  }
  return Language::english;
}

int terminal_width() {
  int columns = std::atoi(environment("COLUMNS").c_str());
  winsize size{};
  if (columns <= 0 && isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
    columns = size.ws_col;
  return columns <= 0 ? 80 : std::clamp(columns, 40, 160);
}

bool wants_colour(const Settings& s) {
  std::string choice = s.text("color");
  if (choice != "auto") return choice == "always";
  return isatty(STDOUT_FILENO) && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
}

void complain(const Error& e, Language l) {
  std::string text = "trigon: " + render_error(e, l) + "\n";
  std::fputs(text.c_str(), stderr);
}

// Writes all of it. A reader that has gone away is no error of ours.
int write_out(const std::string& text, int exit_code, Language l) {
  std::size_t done = 0;
  while (done < text.size()) {
    ssize_t n = write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (n >= 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno == EPIPE) {
      return exit_code;
    } else if (errno != EINTR) {
      complain(Error{ErrorCode::unreadable,
                     message(AppMessage::cannot_write, "the answer", std::strerror(errno)), "",
                     std::nullopt},
               l);
      return exit_bad_input;
    }
  }
  return exit_code;
}

Result<void> settle(Call& call) {
  std::string_view verb = call.line.verb ? call.line.verb->name : std::string_view();
  for (const std::string& path : config_paths()) {
    auto good = load_config(path, verb, call.settings);
    if (!good) return good;
  }
  auto good = load_environment(call.settings, call.warnings);
  if (!good) return good;
  for (const CommandLine::Given& g : call.line.given) {
    good = call.settings.put(*g.flag,
                             g.flag->kind == ValueKind::on_off && g.text.empty() ? "true" : g.text,
                             g.as_written);
    if (!good) return good;
  }
  const Settings& s = call.settings;
  TextStyle& style = call.style;
  if (const Setting* lang = s.find("lang"))
    style.language = lang->text == "zh" ? Language::chinese : Language::english;
  style.width = terminal_width();
  style.colour = wants_colour(s);
  style.one_line = s.on("one-line");
  if (style.one_line) style.width = 1 << 20;  // it really is one
  if (const Setting* explain = s.find("explain")) {
    style.explain = true;
    style.explain_term = explain->text;
  }
  style.top = std::atoi(s.text("top").c_str());
  call.json = s.on("json") || s.text("format") == "json";
  return {};
}

int answer(int argc, char** argv) {
  Call call;
  call.style.language = locale_language();
  // The language of complaints about the command line itself.
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--lang=zh" ||
        (word == "--lang" && i + 1 < argc && std::string(argv[i + 1]) == "zh"))
      call.style.language = Language::chinese;
  }
  auto line = parse_command_line(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  if (!line) return complain(line.error(), call.style.language), exit_bad_input;
  call.line = std::move(*line);
  auto settled = settle(call);
  Language l = call.style.language;
  if (!settled) return complain(settled.error(), l), exit_bad_input;
  auto output = run(call);
  for (const Message& m : call.warnings) {
    std::string text =
        "trigon: " + std::string(label(PresentMessage::warning, l)) + " " + render(m, l);
    std::fputs((text + "\n").c_str(), stderr);
  }
  if (!output) return complain(output.error(), l), exit_bad_input;
  return write_out(output->text, output->exit_code, l);
}

// Only what is safe in a signal handler.
void aborted(int) { _exit(exit_bug); }

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  listen_for_interrupts();
  std::signal(SIGABRT, aborted);
  try {
    return answer(argc, argv);
  } catch (const std::exception& e) {
    complain(Error{ErrorCode::unsupported, message(AppMessage::internal_error, e.what()), "",
                   message(AppMessage::please_report)},
             Language::english);
    return exit_bug;
  }
}
