// A small unit test harness: TEST declares a test, CHECK and its siblings record failures, and
// `check_main.cpp` (library pc_check) runs what is registered.
//
// It is not a framework: no fixtures, no mocking, no parallel runs. A failed CHECK is counted and
// the test goes on; a failed REQUIRE ends the test, for when nothing after it makes sense. An
// exception that leaves a test fails it. `Context` says what a loop was at when a check failed:
//
//   TEST(results_are_the_same_for_every_seed) {
//     for (unsigned seed = 0; seed < 10; ++seed) {
//       check::Context context("seed", seed);
//       CHECK_EQ(run(seed), 42);
//     }
//   }
//
// Usage of a test binary: `NAME [--list] [FILTER...]` runs the tests whose names contain one of the
// filters (all without a filter) and exits with 0 only when at least one ran and none failed.
#pragma once

#include <cstdint>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace check {

struct TestCase {
  const char* name;
  void (*run)();
};

// Thrown by REQUIRE; caught by the runner only.
struct Abort {};

// What the runner knows: the tests of the binary, the context stack, the counts.
struct Runner {
  std::vector<TestCase> tests;
  std::vector<std::string> contexts;
  std::uint64_t checks = 0;
  std::uint64_t failures = 0;

  // The one runner of the process; tests register during static initialisation.
  static Runner& instance() {
    static Runner runner;
    return runner;
  }

  // Counts a failure and prints it with the contexts that are open.
  void fail(const char* file, int line, const std::string& message);
  int main(int argc, char** argv);
};

struct Registration {
  Registration(const char* name, void (*run)()) { Runner::instance().tests.push_back({name, run}); }
};

// Text of a value in a failure message; bytes as numbers, enumerations as their value.
template <typename T>
std::string show(const T& value) {
  std::ostringstream out;
  out.precision(17);
  if constexpr (std::is_same_v<T, bool>) {
    out << (value ? "true" : "false");
  } else if constexpr (std::is_enum_v<T>) {
    out << static_cast<std::int64_t>(value);
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 1) {
    out << static_cast<int>(value);
  } else if constexpr (std::is_null_pointer_v<T>) {
    out << "nullptr";
  } else if constexpr (requires { out << value; }) {
    out << value;
  } else {
    out << "(" << sizeof(T) << " bytes)";
  }
  return out.str();
}

// A scope's name and value, printed with every failure inside the scope.
class Context {
 public:
  template <typename T>
  Context(std::string_view name, const T& value) {
    Runner::instance().contexts.push_back(std::string(name) + "=" + show(value));
  }
  ~Context() { Runner::instance().contexts.pop_back(); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

inline bool verify(bool held, const char* text, const char* file, int line) {
  ++Runner::instance().checks;
  if (!held) Runner::instance().fail(file, line, text);
  return held;
}

template <typename A, typename B>
bool equal(const A& a, const B& b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B> && !std::is_same_v<A, bool> &&
                !std::is_same_v<B, bool> && !std::is_same_v<A, char> && !std::is_same_v<B, char>) {
    return std::cmp_equal(a, b);
  } else {
    return a == b;
  }
}

template <typename A, typename B>
bool verify_equal(const A& a, const B& b, const char* text, const char* file, int line) {
  ++Runner::instance().checks;
  if (equal(a, b)) return true;
  Runner::instance().fail(
      file, line, std::string(text) + "\n    left:  " + show(a) + "\n    right: " + show(b));
  return false;
}

}  // namespace check

#define TEST(name)                                                             \
  static void test_##name();                                                   \
  static const ::check::Registration registration_##name(#name, &test_##name); \
  static void test_##name()

#define CHECK(condition) \
  static_cast<void>(     \
      ::check::verify(static_cast<bool>(condition), "CHECK(" #condition ")", __FILE__, __LINE__))

#define CHECK_EQ(a, b) \
  static_cast<void>(::check::verify_equal((a), (b), "CHECK_EQ(" #a ", " #b ")", __FILE__, __LINE__))

#define REQUIRE(condition)                                                                  \
  do {                                                                                      \
    if (!::check::verify(static_cast<bool>(condition), "REQUIRE(" #condition ")", __FILE__, \
                         __LINE__))                                                         \
      throw ::check::Abort{};                                                               \
  } while (false)

#define REQUIRE_EQ(a, b)                                                                    \
  do {                                                                                      \
    if (!::check::verify_equal((a), (b), "REQUIRE_EQ(" #a ", " #b ")", __FILE__, __LINE__)) \
      throw ::check::Abort{};                                                               \
  } while (false)

// The expression must throw exactly this type (or one derived from it).
#define CHECK_THROWS(expression, type)                                                          \
  do {                                                                                          \
    bool check_thrown = false;                                                                  \
    try {                                                                                       \
      static_cast<void>(expression);                                                            \
    } catch (const type&) {                                                                     \
      check_thrown = true;                                                                      \
    }                                                                                           \
    static_cast<void>(::check::verify(check_thrown, "CHECK_THROWS(" #expression ", " #type ")", \
                                      __FILE__, __LINE__));                                     \
  } while (false)
