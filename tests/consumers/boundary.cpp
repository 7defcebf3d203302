// Errors and classes that pass between a program and the library, in both directions: one type has one identity.
#include <concord/concord.hpp>
#include <iostream>

using namespace concord;

namespace {

struct OwnError : Error {
  using Error::Error;
};

/// A layer of the program's own, which throws.
struct Refuses : nn::Module {
  Value forward(Value) override { throw OwnError("refused"); }
};

/// A layer of the program's own around one of the library's.
struct Twice : nn::Module {
  nn::Linear linear{4, 4};
  Value forward(Value x) override { return linear(linear(x)); }
  Children children() override { return {{"linear", &linear}}; }
};

/// Whether `act` ends with an exception that is caught as this.
template <class Caught, class Act>
bool throws(const Act& act) {
  try {
    act();
  } catch (const Caught&) {
    return true;
  } catch (...) {
  }
  return false;
}

int failures = 0;
void check(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "not so: " << what << '\n';
  ++failures;
}

}  // namespace

int main(int argc, char** argv) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, Shape{2, 4}});
  const auto misfit = [&] { nn::Linear{3, 4}(x); };
  check(throws<ShapeError>(misfit), "the library's ShapeError is caught as one");
  check(throws<Error>(misfit), "it is caught as an Error");
  check(throws<std::runtime_error>(misfit), "it is caught as a std::runtime_error");
  check(!throws<DeviceError>(misfit), "it is no DeviceError");
  check(throws<DeviceError>([] { static_cast<void>(Device::open("opencl:no such device")); }), "there is no such device");
  check(throws<OwnError>([&] { nn::Sequential{nn::Linear{4, 4}, Refuses{}}(x); }),
        "an error of the program's own passes through the library");

  Graph another;
  nn::Sequential net{nn::Linear{4, 4}, Twice{}, nn::ReLU{}};
  const nn::Module::Children children = net.children();
  check(dynamic_cast<nn::Linear*>(children.at(0).module) != nullptr, "a layer of the library is known by its class");
  check(dynamic_cast<Twice*>(children.at(1).module) != nullptr, "so is one of the program's own");
  check(dynamic_cast<nn::Linear*>(children.at(1).module) == nullptr, "which is not the library's");

  const Value y = net(another.input("x", {DType::f32, Shape{2, 4}}));
  Program program = compile(another, {y}, std::make_shared<Variables>(Device::open(argc > 1 ? argv[1] : ""), 1));
  program.write("x", Tensor::of(Shape{2, 4}, std::vector<float>(8, 1)));
  program.run();
  check(program.read(y.name()).shape() == Shape{2, 4}, "a network of both runs");
  return failures == 0 ? 0 : 1;
}
