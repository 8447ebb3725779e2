/* A whole 2-LSTM with a batch of one, one symbol at a time: there is no other work to share a product with,
 * so matrix times vector and the gates are one function. models/native_stepper.py calls it.
 *
 * Matrices are stored in panels of PANEL rows, [rows / PANEL, columns, PANEL], so that they are read from
 * the first byte to the last. Rows are padded with zeros.
 */
enum { PANEL = 64 };

typedef struct {
    int64_t layers, d, symbols;
    int64_t set;          /* floats from the weights of one layer to those of the next; 0 if tied */
    int64_t standard;     /* h' = g_o tanh(m') instead of tanh(g_o m') */
    int64_t reads_memory; /* scores are read from hidden and memory vectors */
    const float *weight;  /* panels of [8 d, 2 d] for each set: gates u, f, o, c of time, then of depth */
    const float *bias;    /* [sets, 8 d] */
    const float *entering;                 /* [symbols, 2, d]: hidden, then memory */
    const float *score_weight, *score_bias; /* panels of [symbols, d or 2 d]; [symbols] */
    float *hidden, *memory;                /* [layers, d]: the state */
    float *x;                              /* [3, d]: hidden vectors of time and depth, memory of depth */
    float *gates;                          /* [8 d], padded */
    float *scores;                         /* [symbols], padded */
} Stepper;

/* Sums in variables of a vector type: compilers keep an array of sums in memory. */
typedef float Lanes __attribute__((vector_size(64), aligned(4)));

static void multiply_panels(int64_t rows, int64_t columns, const float *w, const float *x, float *y) {
    for (int64_t row = 0; row < rows; row += PANEL) {
        Lanes a = {0}, b = {0}, c = {0}, e = {0};
        for (int64_t k = 0; k < columns; k++, w += PANEL) {
            const Lanes *lanes = (const Lanes *)w;
            a += x[k] * lanes[0];
            b += x[k] * lanes[1];
            c += x[k] * lanes[2];
            e += x[k] * lanes[3];
        }
        Lanes *out = (Lanes *)(y + row);
        out[0] = a, out[1] = b, out[2] = c, out[3] = e;
    }
}

static void step_lstm(int64_t d, int64_t standard, const float *g, const float *bias, float *h, float *m) {
    SIMD for (int64_t i = 0; i < d; i++) {
        const float u = sigmoid_float(g[i] + bias[i]), f = sigmoid_float(g[d + i] + bias[d + i]);
        const float o = sigmoid_float(g[2 * d + i] + bias[2 * d + i]);
        const float c = tanh_float(g[3 * d + i] + bias[3 * d + i]);
        m[i] = f * m[i] + u * c;
        h[i] = standard ? o * tanh_float(m[i]) : tanh_float(o * m[i]);
    }
}

void step(const Stepper *s, int64_t symbol) {
    const int64_t d = s->d;
    memcpy(s->x + d, s->entering + symbol * 2 * d, 2 * d * sizeof(float));
    for (int64_t layer = 0; layer < s->layers; layer++) {
        float *h = s->hidden + layer * d, *m = s->memory + layer * d;
        const float *bias = s->bias + (s->set ? layer * 8 * d : 0);
        memcpy(s->x, h, d * sizeof(float));
        multiply_panels(8 * d, 2 * d, s->weight + layer * s->set, s->x, s->gates);
        step_lstm(d, s->standard, s->gates, bias, h, m);
        step_lstm(d, s->standard, s->gates + 4 * d, bias + 4 * d, s->x + d, s->x + 2 * d);
    }
    multiply_panels(s->symbols, s->reads_memory ? 2 * d : d, s->score_weight, s->x + d, s->scores);
    for (int64_t i = 0; i < s->symbols; i++) s->scores[i] += s->score_bias[i];
}
