// Gradients go to the homes of their parameters, and values back. Every stage goes through the same list, so that a
// stage which waits for another is waited for by none before.
#include "concord/train/shared_parameters.hpp"

#include <algorithm>

#include "concord/compile/section.hpp"
#include "concord/core/timeline.hpp"

namespace concord::train {

VariableTransfer::Piece& VariableTransfer::piece_at(std::size_t begin) {
  Piece& piece = pieces_[begin / kPiece % pieces_.size()];
  if (!piece.staging) piece.staging = device_.allocate_staging(kPiece);
  return piece;
}

void VariableTransfer::send(const Storage& from, std::size_t bytes, const std::set<int>& to) {
  const timeline::Span span("send to a stage");
  const EventPtr made = device_.record();
  const auto download = [&](std::size_t begin) {
    Piece& piece = piece_at(begin);
    const std::size_t size = std::min(kPiece, bytes - begin);
    if (piece.moved) piece.moved->wait();
    piece.moved = device_.download_async(*from.buffer, from.offset + begin, piece.staging, size, made);
  };
  if (bytes > 0) download(0);
  for (std::size_t begin = 0; begin < bytes; begin += kPiece) {
    if (begin + kPiece < bytes) download(begin + kPiece);
    Piece& piece = piece_at(begin);
    if (piece.moved) piece.moved->wait();
    piece.moved = nullptr;
    for (const int stage : to) group_.send(piece.staging->bytes().first(std::min(kPiece, bytes - begin)), stage);
  }
}

void VariableTransfer::receive(const Storage& to, std::size_t bytes, int from) {
  const timeline::Span span("wait for a stage");
  const EventPtr used = device_.record();
  for (std::size_t begin = 0; begin < bytes; begin += kPiece) {
    Piece& piece = piece_at(begin);
    if (piece.moved) piece.moved->wait();
    const std::size_t size = std::min(kPiece, bytes - begin);
    group_.receive(piece.staging->bytes().first(size), from);
    piece.moved = device_.write_async(*to.buffer, to.offset + begin, piece.staging, size, used);
  }
  for (const Piece& piece : pieces_) {
    if (piece.moved) device_.wait_for(piece.moved);
  }
}

SharedValues::SharedValues(collective::Group& group, const Graph& graph, const Stages& stages, Variables& variables,
                           VariableRole role)
    : group_(group), transfer_(variables.device(), group) {
  for (const Assignment& assignment : graph.assignments()) {
    const VariablePtr& variable = assignment.variable.node().variable;
    const bool is_average = variable->role == VariableRole::average;
    if (assignment.is_early || is_average != (role == VariableRole::average)) continue;
    const std::string name = assignment.variable.name();
    const auto found = stages.guests().find(is_average ? variable->of : name);
    if (found == stages.guests().end()) continue;
    Guest guest{stages.of(assignment.variable), variable->spec.bytes(), found->second};
    if (guest.home == group.rank() || guest.readers.contains(group.rank())) {
      guest.value = is_average ? variables.require(*variable) : variables.require(variable, name);
    }
    guests_.push_back(std::move(guest));
  }
}

void SharedValues::send() {
  for (const Guest& guest : guests_) {
    if (guest.home == group_.rank()) transfer_.send(guest.value, guest.bytes, guest.readers);
    if (guest.readers.contains(group_.rank())) transfer_.receive(guest.value, guest.bytes, guest.home);
  }
}

SharedGradients::SharedGradients(collective::Group& group, const Traced& traced, const VariablesPtr& variables,
                                 const CompileOptions& options)
    : group_(group), transfer_(variables->device(), group) {
  for (const optim::SharedGradient& shared : traced.staged.shared) {
    Gradient gradient{.home = shared.home, .bytes = shared.landing.spec().bytes(), .others = {}, .add = std::nullopt};
    for (const auto& [stage, part] : shared.parts) {
      gradient.others.push_back(stage);
      if (is_here(stage)) gradient.own = variables->require(*part.node().variable);
    }
    if (is_here(shared.home)) {
      gradient.own = variables->require(*shared.landing.node().variable);
      gradient.add = compile_section(*traced.graph, {{}, {shared.add}}, variables, options);
    }
    gradients_.push_back(std::move(gradient));
  }
}

void SharedGradients::add() {
  for (Gradient& gradient : gradients_) {
    for (const int stage : gradient.others) {
      if (is_here(stage)) transfer_.send(gradient.own, gradient.bytes, {gradient.home});
      if (!is_here(gradient.home)) continue;
      transfer_.receive(gradient.own, gradient.bytes, stage);
      gradient.add->run();
    }
  }
}

}  // namespace concord::train
