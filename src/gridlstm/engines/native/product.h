/* The matrix products of a step: out = x A for rows x, with a matrix A of K rows and N columns for each
 * weight set. Libraries lay A out anew in every call, which takes longer than the product itself if there are
 * few rows. Here it is done once (`pack`): in panels of PANEL_COLUMNS columns, [panels, K, PANEL_COLUMNS],
 * padded with zeros, each read from its first byte to its last.
 *
 * A tile is up to TILE_ROWS rows of the result in one panel. Its sums stay in registers.
 */
#if defined(__AVX512F__)
enum { LANES = 16, TILE_ROWS = 12 };
#elif defined(__AVX__)
enum { LANES = 8, TILE_ROWS = 6 };
#else
enum { LANES = 4, TILE_ROWS = 6 };
#endif
enum { PANEL_COLUMNS = 2 * LANES, DEPTH = 1024 }; /* DEPTH rows of a panel stay in the cache of a core. */

/* As wide as a register: compilers keep wider vectors in memory. */
typedef float Vector __attribute__((vector_size(4 * LANES), aligned(4)));

#define EACH_1(X) X(0)
#define EACH_2(X) EACH_1(X) X(1)
#define EACH_3(X) EACH_2(X) X(2)
#define EACH_4(X) EACH_3(X) X(3)
#define EACH_5(X) EACH_4(X) X(4)
#define EACH_6(X) EACH_5(X) X(5)
#define EACH_7(X) EACH_6(X) X(6)
#define EACH_8(X) EACH_7(X) X(7)
#define EACH_9(X) EACH_8(X) X(8)
#define EACH_10(X) EACH_9(X) X(9)
#define EACH_11(X) EACH_10(X) X(10)
#define EACH_12(X) EACH_11(X) X(11)

#define SUMS(r) Vector left##r = {0}, right##r = {0};
#define ADD(r)                                \
    {                                         \
        const float factor = x[r * x_pitch];  \
        left##r += factor * left;             \
        right##r += factor * right;           \
    }
#define WRITE(r) write_tile(out + r * out_pitch, columns, first, left##r, right##r);

/* `first`: whether these are the first sums for this row; otherwise they are added. */
static inline void write_tile(float *out, int64_t columns, int64_t first, Vector left, Vector right) {
    float sums[PANEL_COLUMNS];
    float *to = columns == PANEL_COLUMNS ? out : sums;
    if (!first) {
        if (to == sums) memcpy(sums, out, columns * sizeof(float));
        left += *(Vector *)to;
        right += *(Vector *)(to + LANES);
    }
    *(Vector *)to = left;
    *(Vector *)(to + LANES) = right;
    if (to == sums) memcpy(out, sums, columns * sizeof(float));
}

#define TILE(R)                                                                                              \
    static void tile_##R(int64_t depth, const float *restrict panel, const float *restrict x, int64_t x_pitch, \
                         float *restrict out, int64_t out_pitch, int64_t columns, int64_t first) {           \
        EACH_##R(SUMS)                                                                                       \
        for (int64_t k = 0; k < depth; k++, x++, panel += PANEL_COLUMNS) {                                   \
            const Vector left = *(const Vector *)panel, right = *(const Vector *)(panel + LANES);            \
            EACH_##R(ADD)                                                                                    \
        }                                                                                                    \
        EACH_##R(WRITE)                                                                                      \
    }
TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6)
#ifdef __AVX512F__
TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12)
#endif

typedef void Tile(int64_t, const float *, const float *, int64_t, float *, int64_t, int64_t, int64_t);
static Tile *const tiles[] = {
    0, tile_1, tile_2, tile_3, tile_4, tile_5, tile_6,
#ifdef __AVX512F__
    tile_7, tile_8, tile_9, tile_10, tile_11, tile_12,
#endif
};

/* One panel of the result, for all rows of a weight set. */
static void multiply_panel(int64_t rows, int64_t K, const float *panel, const float *x, int64_t x_pitch, float *out,
                           int64_t out_pitch, int64_t columns) {
    const int64_t count = (rows + TILE_ROWS - 1) / TILE_ROWS;
    for (int64_t k = 0; k < K; k += DEPTH) {
        const int64_t depth = K - k < DEPTH ? K - k : DEPTH;
        for (int64_t i = 0, r = 0, height; i < count; i++, r += height) {
            height = (rows - r) / (count - i); /* As equal as possible: tiles of few rows are slower. */
            tiles[height](depth, panel + k * PANEL_COLUMNS, x + r * x_pitch + k, x_pitch, out + r * out_pitch,
                          out_pitch, columns, k == 0);
        }
    }
}

/* group: for each weight set in use, its number, and its first and last block; a block has `batch` rows. */
void multiply(int64_t groups, const int64_t *group, int64_t batch, int64_t K, int64_t N, const float *panels,
              const float *x, int64_t x_pitch, float *out, int64_t out_pitch, int64_t threads) {
    const int64_t count = (N + PANEL_COLUMNS - 1) / PANEL_COLUMNS, blocks = group[3 * groups - 1];
    const int64_t parallel = threads > 1 && blocks * batch * K * N > 1 << 20;
    _Pragma("omp parallel for schedule(static) num_threads(threads) if (parallel)")
    for (int64_t i = 0; i < groups * count; i++) {
        const int64_t *g = group + i / count * 3, p = i % count, c = p * PANEL_COLUMNS, row = g[1] * batch;
        multiply_panel((g[2] - g[1]) * batch, K, panels + (g[0] * count + p) * K * PANEL_COLUMNS, x + row * x_pitch,
                       x_pitch, out + row * out_pitch + c, out_pitch, N - c < PANEL_COLUMNS ? N - c : PANEL_COLUMNS);
    }
}

int64_t panel_columns(void) { return PANEL_COLUMNS; }

/* A has elements a[set * set_pitch + k * row_pitch + column * column_pitch]. */
void pack(int64_t sets, int64_t K, int64_t N, const float *a, int64_t set_pitch, int64_t row_pitch,
          int64_t column_pitch, float *panels, int64_t threads) {
    const int64_t count = (N + PANEL_COLUMNS - 1) / PANEL_COLUMNS;
    _Pragma("omp parallel for schedule(static) num_threads(threads) if (threads > 1 && sets * K * N > 1 << 18)")
    for (int64_t i = 0; i < sets * count; i++) {
        const int64_t c = i % count * PANEL_COLUMNS, columns = N - c < PANEL_COLUMNS ? N - c : PANEL_COLUMNS;
        const float *from = a + i / count * set_pitch + c * column_pitch;
        float *to = panels + i * K * PANEL_COLUMNS;
        for (int64_t first = 0; first < K; first += LANES) { /* In squares: one side of them is transposed. */
            const int64_t last = K - first < LANES ? K : first + LANES;
            for (int64_t j = 0; j < PANEL_COLUMNS; j++)
                for (int64_t k = first; k < last; k++)
                    to[k * PANEL_COLUMNS + j] = j < columns ? from[k * row_pitch + j * column_pitch] : 0;
        }
    }
}
