#include "strait/boundary/diagnostics.h"

#include <bit>
#include <cmath>

namespace strait {
namespace {

double squared_norm(const at::Tensor& x) { return x.to(at::kDouble).square().sum().item<double>(); }

}  // namespace

void DiagnosticsRecorder::add(const at::Tensor& x, const MessageContext& context, const MessageReport& report) {
  if (every_ == 0 || x.numel() == 0) return;
  const bool is_measured = measures(context);
  const bool is_next_measured = (context.step + 1) % static_cast<uint64_t>(every_) == 0;
  if (!is_measured && !is_next_measured) return;  // nor copied from a device
  const at::Tensor here = x.to(at::kCPU).contiguous();
  MessageContext on_host = context;
  on_host.device = at::kCPU;
  if (is_measured) {
    const at::Tensor received = report.received.to(at::kCPU);
    const at::Tensor sent = here.to(at::kDouble);
    const at::Tensor error = sent.sub(received);
    const double error_sum = error.sum().item<double>();
    ++sums_.messages;
    sums_.message += squared_norm(sent);
    sums_.error += squared_norm(error);
    sums_.common_error += error_sum * error_sum / static_cast<double>(here.numel());
    sums_.product += sent.mul(received).sum().item<double>();
    if (report.residual.defined()) {
      sums_.residual += squared_norm(report.residual);
      sums_.has_residual = true;
    }
    count_magnitudes(here);
    compare_with_previous(here, on_host);
  }
  if (is_next_measured) previous_.set_rows(previous_.room(meta_of(here)).copy_(here), on_host);
}

void DiagnosticsRecorder::count_magnitudes(const at::Tensor& x) {
  sums_.elements += static_cast<uint64_t>(x.numel());
  for (const float value : std::span(x.data_ptr<float>(), static_cast<size_t>(x.numel()))) {
    const uint32_t bits = std::bit_cast<uint32_t>(value) & 0x7fffffffU;
    sums_.zeros += bits == 0 ? 1 : 0;
    ++sums_.bins[bits >> kBinShift];
  }
  sums_.largest = std::max(sums_.largest, x.abs().max().item<float>());
}

void DiagnosticsRecorder::compare_with_previous(const at::Tensor& x, const MessageContext& context) {
  const at::Tensor now = x.view({x.size(0), -1}).to(at::kDouble);
  const at::Tensor before = previous_.rows(meta_of(x), context).reshape(now.sizes()).to(at::kDouble);
  const at::Tensor norms = now.norm(2, 1).mul(before.norm(2, 1));
  const at::Tensor cosines = now.mul(before).sum(1).div(norms);
  const at::Tensor defined = norms.gt(0);  // a place not used before is zero
  sums_.cosines += cosines.masked_fill(defined.logical_not(), 0).sum().item<double>();
  sums_.cosine_rows += defined.sum().item<int64_t>();
}

double DiagnosticsRecorder::quantile(double share) const {
  const auto rank = static_cast<uint64_t>(std::ceil(share * static_cast<double>(sums_.elements)));
  uint64_t passed = 0;
  uint32_t bin = 0;
  while (passed + sums_.bins[bin] < rank) passed += sums_.bins[bin++];
  if (passed + sums_.bins[bin] == sums_.elements) return static_cast<double>(sums_.largest);
  if (bin == 0) return 0;  // zeros, and numbers that a float32 can hardly hold
  const auto low = std::bit_cast<float>(bin << kBinShift);
  const auto high = std::bit_cast<float>((bin + 1) << kBinShift);
  return (static_cast<double>(low) + static_cast<double>(high)) / 2;
}

std::optional<Diagnostics> DiagnosticsRecorder::measured() const {
  if (sums_.messages == 0) return std::nullopt;
  Diagnostics all;
  all.messages = sums_.messages;
  all.zeros = static_cast<double>(sums_.zeros) / static_cast<double>(sums_.elements);
  for (size_t i = 0; i < all.quantiles.size(); ++i) all.quantiles[i] = quantile(Diagnostics::kShares[i]);
  const auto relative = [&](double squares) {
    return sums_.message == 0 ? 0.0 : std::sqrt(squares / sums_.message);
  };
  all.relative_error = relative(sums_.error);
  all.mean_error = relative(sums_.common_error);
  if (sums_.message > 0) all.gain = sums_.product / sums_.message;
  if (sums_.cosine_rows > 0) all.cosine = sums_.cosines / static_cast<double>(sums_.cosine_rows);
  if (sums_.has_residual) all.residual_norm = relative(sums_.residual);
  return all;
}

}  // namespace strait
