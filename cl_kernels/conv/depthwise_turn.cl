// The filters of a depthwise convolution as its kernels for channels-last images read them. TAPS are those of a filter.

// weights (channel, tap) to (tap, channel), with FLIP from the last tap to the first. An item has a value.
__kernel void depthwise_turn(__global const float *restrict weights, ulong weights_offset, __global float *restrict turned,
                             ulong turned_offset, uint channels) {
  const uint item = (uint)get_global_id(0), tap = item / channels, channel = item - tap * channels;
  if (tap >= TAPS) return;
#ifdef FLIP
  turned[turned_offset + item] = weights[weights_offset + channel * TAPS + TAPS - 1 - tap];
#else
  turned[turned_offset + item] = weights[weights_offset + channel * TAPS + tap];
#endif
}
