#include "strait/experiment/plain_link.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/codecs/selective.h"

namespace strait {
namespace {

/// The operators of a codec and of its halves, where it has them.
template <class Make>
LinkOperators operators_of(const std::shared_ptr<const Codec>& codec, const Make& make) {
  LinkOperators operators{make(codec), {}, {}};
  if (const Selective* selective = codec->selective()) {
    operators.larger_half = make(selective->half(Selective::Half::larger));
    operators.smaller_half = make(selective->half(Selective::Half::smaller));
  }
  return operators;
}

/// Quantises every row of `rows` [G, n] as a group, in the order of docs/wire_format.md, and decodes it.
at::Tensor quantise_rows(const at::Tensor& rows, int64_t bits, bool stochastic) {
  const auto levels = static_cast<double>((1 << bits) - 1);
  const at::Tensor low = rows.amin(1, /*keepdim=*/true);
  const at::Tensor range = rows.amax(1, /*keepdim=*/true).sub_(low);
  const at::Tensor divisor = range.masked_fill(range.eq(0), 1);
  at::Tensor scaled = rows.sub(low).div_(divisor).mul_(levels);
  if (stochastic) {
    scaled.add_(at::rand_like(scaled)).floor_().clamp_max_(levels);  // the sum can round up to levels + 1
  } else {
    scaled.round_();
  }
  const at::Tensor codes = scaled.to(at::kByte);
  return codes.to(at::kFloat).div_(levels).mul_(range).add_(low);
}

Operator plain_quant(CodecSpec spec) {
  const int64_t bits = parse_integer(spec.argument("the number of bits"), "the number of bits", 1, 8);
  const bool stochastic = spec.option("rounding", "nearest") == "stochastic";
  const std::string scope = spec.option("scope", "tensor");
  if (scope == "tensor" || scope == "sample") {
    return [=](const at::Tensor& x, const MessageContext& /*context*/) {
      const int64_t groups = scope == "tensor" ? 1 : x.size(0);
      return quantise_rows(x.reshape({groups, -1}), bits, stochastic).view(x.sizes());
    };
  }
  const int64_t block = parse_integer(split(scope, ':').back(), "the block", 1, INT64_MAX);
  return [=](const at::Tensor& x, const MessageContext& /*context*/) {
    const at::Tensor rows = x.reshape({x.size(0), -1});
    const int64_t whole = rows.size(1) / block * block;
    const at::Tensor blocks = rows.narrow(1, 0, whole).reshape({-1, block});
    const at::Tensor head = quantise_rows(blocks, bits, stochastic).view({x.size(0), whole});
    if (whole == rows.size(1)) return head.view(x.sizes());
    const at::Tensor tail = rows.narrow(1, whole, rows.size(1) - whole);
    return at::cat({head, quantise_rows(tail, bits, stochastic)}, 1).view(x.sizes());
  };
}

Operator through(at::ScalarType type) {
  return [type](const at::Tensor& x, const MessageContext& /*context*/) { return x.to(type).to(at::kFloat); };
}

/// `values` is what becomes of the kept values [G, k].
Operator plain_topk(std::shared_ptr<const Codec> codec, Operator values) {
  return [codec = std::move(codec), values = std::move(values)](const at::Tensor& x,
                                                                const MessageContext& context) {
    const SparseShape shape = codec->selective()->shape_of(meta_of(x));
    if (shape.k == 0) return at::zeros_like(x);
    const at::Tensor groups = x.reshape({static_cast<int64_t>(shape.groups), static_cast<int64_t>(shape.n)});
    const auto k = static_cast<int64_t>(shape.k);
    const at::Tensor kept = std::get<1>(groups.abs().topk(k, 1, /*largest=*/true, /*sorted=*/false));
    const at::Tensor sent = values(groups.gather(1, kept), context);
    return at::zeros_like(groups).scatter_(1, kept, sent).view(x.sizes());
  };
}

/// The plain operator of a codec that does not select; empty where there is none.
Operator plain_operator(const CodecSpec& spec) {
  if (spec.name() == "fp16") return through(at::kHalf);
  if (spec.name() == "bf16") return through(at::kBFloat16);
  if (spec.name() == "quant") return plain_quant(spec);
  if (spec.name() == "none") {
    return [](const at::Tensor& x, const MessageContext& /*context*/) { return x.clone(); };
  }
  return {};
}

/// What becomes of the kept values [G, k] under topk's option `values`; quant takes each row as a group.
Operator plain_values(const std::string& format) {
  if (format == "fp32") return [](const at::Tensor& x, const MessageContext& /*context*/) { return x; };
  return plain_operator(CodecSpec::parse(format.starts_with("quant") ? format + ",scope=sample" : format));
}

Operator ef(Operator whole) {
  return [whole = std::move(whole), residual = at::Tensor()](const at::Tensor& x,
                                                             const MessageContext& context) mutable {
    const at::Tensor sum = x.add(residual.defined() ? residual : at::zeros_like(x));
    at::Tensor received = whole(sum, context);
    residual = sum.sub(received);
    return received;
  };
}

Operator ef21(Operator whole) {
  return [whole = std::move(whole), estimate = at::Tensor()](const at::Tensor& x,
                                                             const MessageContext& context) mutable {
    if (!estimate.defined()) estimate = at::zeros_like(x);
    estimate = estimate.add(whole(x.sub(estimate), context));
    return estimate;
  };
}

Operator ef_mixed(LinkOperators operators) {
  return [operators = std::move(operators), residual = at::Tensor()](const at::Tensor& x,
                                                                     const MessageContext& context) mutable {
    if (!residual.defined()) residual = at::zeros_like(x);
    at::Tensor received = operators.larger_half(x, context).add(operators.smaller_half(residual, context));
    residual = x.add(residual).sub_(received);
    return received;
  };
}

Operator aq_sgd(Operator whole) {
  return [whole = std::move(whole), buffer = at::Tensor()](const at::Tensor& x,
                                                           const MessageContext& context) mutable {
    buffer = buffer.defined() ? buffer.add(whole(x.sub(buffer), context)) : x;
    return buffer;
  };
}

}  // namespace

LinkOperators exact_operators(const std::shared_ptr<const Codec>& codec) {
  return operators_of(codec, [](std::shared_ptr<const Codec> part) -> Operator {
    return [part = std::move(part)](const at::Tensor& x, const MessageContext& context) {
      return part->reconstruct(x, context);
    };
  });
}

std::optional<LinkOperators> plain_operators(const std::shared_ptr<const Codec>& codec) {
  CodecSpec spec = CodecSpec::parse(codec->spec());
  if (spec.name() == "topk") {
    const Operator values = plain_values(spec.option("values", "fp32"));
    return operators_of(codec,
                        [&](std::shared_ptr<const Codec> part) { return plain_topk(std::move(part), values); });
  }
  Operator whole = plain_operator(spec);
  if (!whole) return {};
  return LinkOperators{std::move(whole), {}, {}};
}

Operator plain_link(const std::string& feedback, LinkOperators operators) {
  if (feedback == "none") return operators.whole;
  if (feedback == "ef") return ef(std::move(operators.whole));
  if (feedback == "ef21") return ef21(std::move(operators.whole));
  if (feedback == "ef-mixed") return ef_mixed(std::move(operators));
  if (feedback == "aq-sgd") return aq_sgd(std::move(operators.whole));
  throw InputError("feedback \"{}\" has no definition in plain tensor operations", feedback);
}

}  // namespace strait
