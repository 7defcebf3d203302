// The smallest use of the installed library: two training steps, on the device of the first argument.
#include <concord/concord.hpp>
#include <iostream>

using namespace concord;

int main(int argc, char** argv) try {
  nn::Sequential net{nn::Linear{4, 16}, nn::ReLU{}, nn::Linear{16, 3}};
  Trainer trainer{net, loss::cross_entropy, optim::Sgd{.lr = 0.1}, Device::open(argc > 1 ? argv[1] : "")};
  const History history = trainer.fit(data::synthetic(Shape{4}, 3, 64), {.batch = 32});
  std::cout << trainer.steps_done() << " steps on " << trainer.device().info().name << ", loss "
            << history.epochs.back().loss << '\n';
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
