// The runner of the unit test harness: selects tests by name, runs them, prints and counts.
#include <chrono>
#include <cstdio>
#include <cstring>

#include "tests/check.hpp"

namespace check {
namespace {

// A check in a loop over thousands of elements must not bury the first failure.
constexpr std::uint64_t kPrintedFailuresPerTest = 20;

bool selected(const char* name, const std::vector<const char*>& filters) {
  if (filters.empty()) return true;
  for (const char* filter : filters) {
    if (std::strstr(name, filter) != nullptr) return true;
  }
  return false;
}

void run(Runner& runner, const TestCase& test) {
  try {
    test.run();
  } catch (const Abort&) {
    // Already counted and printed by REQUIRE.
  } catch (const std::exception& error) {
    runner.fail(test.name, 0, std::string("unexpected exception: ") + error.what());
  } catch (...) {
    runner.fail(test.name, 0, "unexpected exception of a type unknown to std");
  }
}

}  // namespace

void Runner::fail(const char* file, int line, const std::string& message) {
  ++failures;
  if (failures > kPrintedFailuresPerTest) return;
  std::printf("%s:%d: %s\n", file, line, message.c_str());
  for (const std::string& context : contexts) std::printf("    with %s\n", context.c_str());
}

int Runner::main(int argc, char** argv) {
  std::vector<const char*> filters;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--list") == 0) {
      for (const TestCase& test : tests) std::printf("%s\n", test.name);
      return 0;
    }
    filters.push_back(argv[i]);
  }
  std::size_t ran = 0;
  std::size_t failed = 0;
  for (const TestCase& test : tests) {
    if (!selected(test.name, filters)) continue;
    ++ran;
    failures = 0;
    const auto start = std::chrono::steady_clock::now();
    run(*this, test);
    contexts.clear();
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    if (failures > 0) ++failed;
    std::printf("%s %s (%.0f ms)", failures == 0 ? "ok  " : "FAIL", test.name, taken.count());
    if (failures > kPrintedFailuresPerTest) {
      std::printf(" %llu failed checks", static_cast<unsigned long long>(failures));
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  std::printf("%zu tests, %zu failed, %llu checks\n", ran, failed,
              static_cast<unsigned long long>(checks));
  if (ran == 0) std::printf("no test matches; see --list\n");
  return ran > 0 && failed == 0 ? 0 : 1;
}

}  // namespace check

int main(int argc, char** argv) { return check::Runner::instance().main(argc, argv); }
