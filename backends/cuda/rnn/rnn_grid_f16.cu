/* rnn_grid_f16.cu -- the kernels of rnn_grid.cuh on f16. */
#include "rnn_grid.cuh"

#define FORWARD(tiles, blocks, kept) rnn_grid_forward_of<rnn_mma<false, tiles, blocks, kept>>(256 * blocks, false)
#define GRADIENT(tiles, blocks, kept) rnn_grid_backward_of<rnn_mma<false, tiles, blocks, kept>>(256 * blocks, false)
const cuda_rnn_grid_kernel cuda_rnn_grid_f16[] = {
  FORWARD(2, 1, 1), FORWARD(4, 1, 1), FORWARD(2, 2, 2), FORWARD(4, 2, 2), FORWARD(2, 4, 4), FORWARD(4, 4, 4), FORWARD(4, 5, 5),
  FORWARD(4, 6, 5), FORWARD(4, 8, 5), FORWARD(3, 6, 6), FORWARD(3, 8, 6), GRADIENT(1, 4, 4), GRADIENT(1, 8, 8), GRADIENT(1, 16, 16),
  GRADIENT(1, 20, 20), {} };
