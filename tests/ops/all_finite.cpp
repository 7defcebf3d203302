// AllFinite: one bad element anywhere is found, and no large, small or infinite-looking one taken for it.
#include "concord/ops/all_finite.hpp"

#include <cmath>
#include <limits>

#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("one element that is not finite is found among any number of tensors", "[ops]") {
  for (const DevicePtr& device : devices()) {
    for (const std::size_t tensors : {1U, 2U, 70U}) {  // more than one launch
      INFO(device->info().id << ", " << tensors << " tensors");
      Graph graph;
      std::vector<Value> values;
      std::vector<std::string> names;
      std::vector<Shape> shapes;
      for (std::size_t i = 0; i < tensors; ++i) {
        shapes.push_back(i % 3 == 0 ? Shape{} : i % 3 == 1 ? Shape{131, 1013} : Shape{7, 3});
        names.push_back("x" + std::to_string(i));
        values.push_back(graph.input(names.back(), {DType::f32, shapes.back()}));
      }
      const Value all = all_finite(values, names);
      Program program = compile(graph, {{all}}, std::make_shared<Variables>(device, 0));
      const auto write = [&](std::size_t i, std::int64_t place, float value) {
        Tensor tensor(DType::f32, shapes[i]);
        std::ranges::fill(tensor.values<float>(), std::numeric_limits<float>::max());
        tensor.values<float>()[0] = -std::numeric_limits<float>::denorm_min();
        if (place >= 0) tensor.values<float>()[static_cast<std::size_t>(place)] = value;
        program.write(names[i], tensor);
      };
      const auto result = [&] {
        program.run();
        return program.read(all).values<float>()[0];
      };
      for (std::size_t i = 0; i < tensors; ++i) write(i, -1, 0);
      CHECK(result() == 1);
      for (const std::size_t i : {std::size_t{0}, tensors / 2, tensors - 1}) {
        for (const std::int64_t place : {std::int64_t{0}, shapes[i].elements() / 2, shapes[i].elements() - 1}) {
          for (const float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
            INFO("tensor " << i << ", element " << place << ", " << bad);
            write(i, place, bad);
            CHECK(result() == 0);
          }
        }
        write(i, -1, 0);
      }
      CHECK(result() == 1);
    }
  }
}

TEST_CASE("counters that wait for the check go on run after run", "[ops]") {
  for (const DevicePtr& device : devices()) {
    for (const std::size_t tensors : {1U, 70U}) {
      INFO(device->info().id << ", " << tensors << " tensors");
      Graph graph;
      std::vector<Value> values;
      std::vector<std::string> names;
      for (std::size_t i = 0; i < tensors; ++i) {
        names.push_back("x" + std::to_string(i));
        values.push_back(graph.input(names.back(), {DType::f32, {40}}));
      }
      const auto counter = [&](const char* name, DType type) {
        return graph.variable(std::make_shared<Variable>(Variable{.name = name, .spec = {type, Shape{}}, .init = {}}));
      };
      const Value steps = counter("steps", DType::i32), rate = counter("rate", DType::f32);
      const Scalar finite = scalar::input(0), done = scalar::input(1), old = scalar::input(2);
      const std::vector<Value> next = pointwise("numbers", {all_finite(values, names), steps, rate},
                                                {done + finite, scalar::select(finite, old + 0.5F, old), finite * 3.0F},
                                                {DType::i32, DType::f32, DType::f32});
      graph.assign(steps, next[0]);
      graph.assign(rate, next[1]);
      const auto variables = std::make_shared<Variables>(device, 0);
      Program program = compile(graph, {{next[2]}}, variables);
      std::int32_t counted = 0;
      for (const float last : {1.0F, NAN, 2.0F, INFINITY, 3.0F}) {
        for (const std::string& name : names) {
          program.write(name, Tensor::of<float>({40}, std::vector<float>(40, name == names.back() ? last : 1.0F)));
        }
        program.run();
        counted += std::isfinite(last) ? 1 : 0;
        CHECK(variables->read("steps").values<std::int32_t>()[0] == counted);
        CHECK(variables->read("rate").values<float>()[0] == 0.5F * static_cast<float>(counted));
        CHECK(program.read(next[2]).values<float>()[0] == (std::isfinite(last) ? 3 : 0));
      }
    }
  }
}

TEST_CASE("tensors without elements are finite", "[ops]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Graph graph;
    const Value none = graph.input("none", {DType::f32, {0, 3}}), some = graph.input("some", {DType::f32, {5}});
    const std::vector<Value> all{all_finite({none}, {"none"}), all_finite({none, some, none}, {"a", "b", "c"})};
    Program program = compile(graph, all, std::make_shared<Variables>(device, 0));
    program.write("none", Tensor(DType::f32, {0, 3}));
    for (const float value : {1.0F, INFINITY, 0.0F}) {
      Tensor values(DType::f32, {5});
      values.values<float>()[4] = value;
      program.write("some", values);
      program.run();
      CHECK(program.read(all[0]).values<float>()[0] == 1);
      CHECK(program.read(all[1]).values<float>()[0] == (std::isfinite(value) ? 1.0F : 0.0F));
    }
  }
}
