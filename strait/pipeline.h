#pragma once

// Training a network of one's own over stages: see docs/library.md.

#include "strait/boundary/boundary.h"
#include "strait/codecs/codec.h"
#include "strait/links/link.h"
#include "strait/pipeline/pipeline.h"
#include "strait/transport/join_group.h"
#include "strait/transport/stop_agreement.h"
