#!/usr/bin/env python3
"""A transformer: attention of each kind, layer norm, a mask, trained and then asked without gradients."""
import torch


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    embed = torch.nn.Embedding(50, 32)
    layer = torch.nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, dropout=0.1, batch_first=True)
    body = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    head = torch.nn.Linear(32, 50)
    parts = torch.nn.ModuleList([embed, body, head])
    adamw = torch.optim.AdamW(parts.parameters(), lr=1e-3)
    words = torch.randint(0, 50, (4, 12))
    mask = torch.nn.Transformer.generate_square_subsequent_mask(12)

    def forward():
        return head(body(embed(words), mask=mask))

    for _ in range(3):
        adamw.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(forward().flatten(0, 1), words.flatten())
        loss.backward()
        adamw.step()
    parts.eval()
    with torch.inference_mode():
        heads = torch.nn.functional.scaled_dot_product_attention(*(torch.randn(2, 4, 8, 16) for _ in range(3)))
        scores = torch.baddbmm(torch.zeros(2, 8, 8), torch.randn(2, 8, 4), torch.randn(2, 4, 8))
        print("loss %.4f, %.4f %.4f %.4f" % (loss.item(), forward().std().item(), heads.std().item(),
                                             scores.softmax(-1).max().item()))


if __name__ == "__main__":
    main()
