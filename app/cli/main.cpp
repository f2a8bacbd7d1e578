#include <cstdio>

int main() { std::puts("trigon " TRIGON_VERSION); }
