/* rnn_grid_f32.cu -- the kernels of rnn_grid.cuh on f32. */
#include "rnn_grid.cuh"

const cuda_rnn_grid_kernel cuda_rnn_grid_f32[] = {
  rnn_grid_forward_of<rnn_simt<16, 1>>(1024, true), rnn_grid_forward_of<rnn_simt<32, 1>>(1024, true),
  rnn_grid_backward_of<rnn_simt<16, 1>>(1024, true), rnn_grid_backward_of<rnn_simt<8, 4>>(4096, true), {} };
