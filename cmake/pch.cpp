// Carries the precompiled torch/torch.h that the targets share.
