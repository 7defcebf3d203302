"""The networks of the zoo for sequences, in PyTorch: characters, speech, words."""
import torch
import torch.nn.functional as F
from torch import nn

from zoo_entries import entry, language


class CharRnn(nn.Module):
    def __init__(self, classes, recurrent, dropout=0.0):
        super().__init__()
        self.embedding = nn.Embedding(classes, 64)
        self.rnn = recurrent(64, 256, num_layers=2, batch_first=True, dropout=dropout)
        self.decoder = nn.Linear(256, classes)

    def forward(self, x):
        return self.decoder(self.rnn(self.embedding(x))[0])


language("char_lstm", lambda classes: CharRnn(classes, nn.LSTM), 96)
language("char_gru", lambda classes: CharRnn(classes, nn.GRU), 96)


class Lstm(nn.Module):
    def __init__(self, classes, depth=2, width=512):
        super().__init__()
        self.rnn, self.fc = nn.LSTM(512, width, depth, batch_first=True), nn.Linear(width, classes)

    def forward(self, x):
        return self.fc(self.rnn(x)[0][:, -1])


entry("lstm", Lstm, 1000, [6, 512])


class DeepSpeech2(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, (41, 11), 2, (20, 5), bias=False)
        self.conv2 = nn.Conv2d(32, 32, (21, 11), (2, 1), (10, 5), bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(32), nn.BatchNorm2d(32)
        self.rnn = nn.GRU(32 * 41, 800, num_layers=5, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(1600, classes)

    def forward(self, x):
        x = F.hardtanh(self.bn2(self.conv2(F.hardtanh(self.bn1(self.conv1(x)), 0, 20))), 0, 20)
        return self.fc(self.rnn(x.permute(0, 3, 1, 2).flatten(2))[0])


entry("deep_speech_2", DeepSpeech2, 29, [1, 161, 24], task="transcription")


def split_heads(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def attend(q, k, v, heads, causal=False, dropout=0.0):
    x = F.scaled_dot_product_attention(*(split_heads(t, heads) for t in (q, k, v)), is_causal=causal,
                                       dropout_p=dropout)
    return x.transpose(1, 2).flatten(2)


class GptBlock(nn.Module):
    def __init__(self, width, heads, dropout=0.0):
        super().__init__()
        self.ln_1, self.ln_2, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(width, 3 * width), "c_proj": nn.Linear(width, width)})
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        rate = self.dropout.p if self.training else 0.0
        qkv = self.attn.c_attn(self.ln_1(x)).chunk(3, -1)
        x = x + self.dropout(self.attn.c_proj(attend(*qkv, self.heads, True, rate)))
        return x + self.dropout(self.mlp.c_proj(F.gelu(self.mlp.c_fc(self.ln_2(x)), approximate="tanh")))


class Gpt(nn.Module):
    def __init__(self, classes, context, width, heads, blocks, dropout=0.0):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(classes, width), nn.Embedding(context, width)
        self.h = nn.Sequential(*(GptBlock(width, heads, dropout) for _ in range(blocks)))
        self.ln_f, self.dropout = nn.LayerNorm(width), nn.Dropout(dropout)

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        y = self.ln_f(self.h(self.dropout(self.wte(x) + self.wpe(places))))
        return y @ self.wte.weight.T


language("gpt_tiny", lambda classes: Gpt(classes, 64, 128, 4, 4), 96)
language("gpt2_small", lambda classes: Gpt(classes, 1024, 768, 12, 12), 50257)


class BertLayer(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        output = lambda i: nn.ModuleDict({"dense": nn.Linear(i, width), "LayerNorm": nn.LayerNorm(width, eps=1e-12)})
        parts = nn.ModuleDict({part: nn.Linear(width, width) for part in ("query", "key", "value")})
        self.attention = nn.ModuleDict({"self": parts, "output": output(width)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, 4 * width)})
        self.output, self.heads, self.dropout = output(4 * width), heads, nn.Dropout(dropout)

    def forward(self, x):
        parts, output = self.attention.self, self.attention.output
        y = attend(parts.query(x), parts.key(x), parts.value(x), self.heads,
                   dropout=self.dropout.p if self.training else 0.0)
        x = output.LayerNorm(self.dropout(output.dense(y)) + x)
        y = self.output.dense(F.gelu(self.intermediate.dense(x)))
        return self.output.LayerNorm(self.dropout(y) + x)


class Bert(nn.Module):
    def __init__(self, classes, context=512, width=768, heads=12, blocks=12, dropout=0.0):
        super().__init__()
        norm = lambda: nn.LayerNorm(width, eps=1e-12)
        embeddings = {f"{name}_embeddings": nn.Embedding(words, width)
                      for name, words in (("word", classes), ("position", context), ("token_type", 2))}
        layers = nn.Sequential(*(BertLayer(width, heads, dropout) for _ in range(blocks)))
        self.bert = nn.ModuleDict({"embeddings": nn.ModuleDict(embeddings | {"LayerNorm": norm()}),
                                   "encoder": nn.ModuleDict({"layer": layers})})
        transform = nn.ModuleDict({"dense": nn.Linear(width, width), "LayerNorm": norm()})
        self.cls = nn.ModuleDict({"predictions": nn.ModuleDict({"transform": transform})})
        self.cls.predictions.bias = nn.Parameter(torch.zeros(classes))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        e, head = self.bert.embeddings, self.cls.predictions
        places = torch.arange(x.shape[1], device=x.device)
        y = e.word_embeddings(x) + e.position_embeddings(places) + e.token_type_embeddings.weight[0]
        y = self.bert.encoder.layer(self.dropout(e.LayerNorm(y)))
        y = head.transform.LayerNorm(F.gelu(head.transform.dense(y)))
        return F.linear(y, e.word_embeddings.weight, head.bias)


language("bert_base", Bert, 30522)
