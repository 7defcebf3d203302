// A group that counts what its rank sends to single ranks.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "concord/collective/group.hpp"

namespace concord::test {

class CountingGroup : public collective::Group {
 public:
  explicit CountingGroup(collective::GroupPtr group) : Group(group->rank(), group->size()), group_(std::move(group)) {}

  /// Bytes by receiver.
  [[nodiscard]] const std::map<int, std::size_t>& sent() const { return sent_; }

  [[nodiscard]] std::string transport() const override { return group_->transport(); }
  void reduce_scatter(std::span<float> values, std::span<const float> start) override {
    group_->reduce_scatter(values, start);
  }
  void all_gather(std::span<std::byte> values, std::size_t element) override { group_->all_gather(values, element); }
  void broadcast(std::span<std::byte> bytes, int root) override { group_->broadcast(bytes, root); }
  void send(std::span<const std::byte> bytes, int to) override {
    sent_[to] += bytes.size();
    group_->send(bytes, to);
  }
  void receive(std::span<std::byte> bytes, int from) override { group_->receive(bytes, from); }
  void barrier() override { group_->barrier(); }
  [[nodiscard]] collective::GroupPtr duplicate() override { return group_->duplicate(); }

 private:
  collective::GroupPtr group_;
  std::map<int, std::size_t> sent_;
};

}  // namespace concord::test
