#include "present/json.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace trigon {
namespace {

TEST(WriteJson, NumbersHaveAtMostNineDigits) {
  JsonNode n = JsonNode::array();
  n.add(31.040074099999998)
      .add(1.0 / 3)
      .add(1e9 / 7)
      .add(2.0)
      .add(1e300)
      .add(std::nan(""))
      .add(std::int64_t{1} << 62);
  EXPECT_EQ(write_json(n),
            "[\n  31.0400741,\n  0.333333333,\n  142857143,\n  2,\n  1e+300,\n  null,\n  "
            "4611686018427387904\n]\n");
}

TEST(WriteJson, KeysKeepTheirOrderAndTextIsMadeSafe) {
  JsonNode o = JsonNode::object();
  o.set("z", true).set("a", "\x1b\xff").set("none", JsonNode(std::optional<double>()));
  EXPECT_EQ(write_json(o),
            "{\n  \"z\": true,\n  \"a\": \"\\u001b\xef\xbf\xbd\",\n  \"none\": null\n}\n");
}

TEST(WriteJson, AnEstimateIsFourKeys) {
  EXPECT_EQ(
      write_json(json_of(Estimate<double>{2, 1.5, 3, Basis::calibrated})),
      "{\n  \"value\": 2,\n  \"low\": 1.5,\n  \"high\": 3,\n  \"basis\": \"calibrated\"\n}\n");
}

}  // namespace
}  // namespace trigon
