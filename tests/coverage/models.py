"""Making each architecture with random weights, its inputs, and which of their sizes vary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .architectures import Architecture

Sizes = tuple[int, int]
"""Batch size and text length."""

SIZES: tuple[Sizes, ...] = ((2, 12), (3, 8), (5, 16))
"""The sizes to compare at; a program is exported at the first."""


@dataclass(frozen=True)
class Inputs:
    """What a model is called with.

    Attributes:
        make: Returns the tensors by name for a batch size and a text length.
        dynamic: The varying dimensions of each input: `batch` or `length` by axis.
    """

    make: Callable[[int, int], dict[str, torch.Tensor]]
    dynamic: dict[str, dict[int, str]]


def _ids(batch: int, length: int, vocabulary: int = 99) -> torch.Tensor:
    return torch.randint(3, vocabulary, (batch, length))


def _mask(batch: int, length: int) -> torch.Tensor:
    """Return a padding mask; the last row is half padding."""
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[-1, length // 2 :] = 0
    return mask


_TEXT_AXES = {0: "batch", 1: "length"}
_BATCH = {0: "batch"}


def _only(name: str, *shape: int, scale: float = 1.0) -> Inputs:
    return Inputs(lambda batch, _: {name: torch.randn(batch, *shape) * scale}, {name: _BATCH})


INPUTS: dict[str, Inputs] = {
    "tokens": Inputs(lambda b, n: {"input_ids": _ids(b, n)}, {"input_ids": _TEXT_AXES}),
    "tokens_mask": Inputs(
        lambda b, n: {"input_ids": _ids(b, n), "attention_mask": _mask(b, n)},
        {"input_ids": _TEXT_AXES, "attention_mask": _TEXT_AXES},
    ),
    "pair": Inputs(
        lambda b, n: {
            "input_ids": _ids(b, n),
            "attention_mask": _mask(b, n),
            "decoder_input_ids": _ids(b, 6),
        },
        {"input_ids": _TEXT_AXES, "attention_mask": _TEXT_AXES, "decoder_input_ids": _BATCH},
    ),
    "image": _only("pixel_values", 3, 32, 32),
    "image_large": _only("pixel_values", 3, 48, 48),
    "image_levit": _only("pixel_values", 3, 64, 64),
    "image_detr": Inputs(
        lambda b, _: {
            "pixel_values": torch.randn(b, 3, 64, 64),
            "pixel_mask": torch.ones(b, 64, 64, dtype=torch.int64),
        },
        {"pixel_values": _BATCH, "pixel_mask": _BATCH},
    ),
    "video": _only("pixel_values", 4, 3, 32, 32),
    "sam": Inputs(
        lambda b, _: {
            "pixel_values": torch.randn(b, 3, 32, 32),
            "input_points": torch.rand(b, 1, 2, 2) * 32,
        },
        {"pixel_values": _BATCH, "input_points": _BATCH},
    ),
    "wave": _only("input_values", 1600),
    "waves": _only("input_values", 1, 640),
    "spectrum": _only("input_features", 8, 40),
    "frames": _only("input_values", 24, 16),
    "series": _only("past_values", 16, 2),
    "spectrum_pair": Inputs(
        lambda b, n: {
            "input_features": torch.randn(b, 8, 40),
            "decoder_input_ids": _ids(b, n),
        },
        {"input_features": _BATCH, "decoder_input_ids": _TEXT_AXES},
    ),
    "text_image": Inputs(
        lambda b, n: {
            "input_ids": _ids(b, n),
            "attention_mask": _mask(b, n),
            "pixel_values": torch.randn(b, 3, 32, 32),
        },
        {"input_ids": _TEXT_AXES, "attention_mask": _TEXT_AXES, "pixel_values": _BATCH},
    ),
    "text_image_joint": Inputs(
        lambda b, n: {
            "input_ids": _ids(b, n),
            "attention_mask": _mask(b, n),
            "pixel_values": torch.randn(b, 3, 32, 32),
            "pixel_mask": torch.ones(b, 32, 32, dtype=torch.int64),
        },
        {
            "input_ids": _TEXT_AXES,
            "attention_mask": _TEXT_AXES,
            "pixel_values": _BATCH,
            "pixel_mask": _BATCH,
        },
    ),
    "llava": Inputs(
        lambda b, n: {
            "input_ids": torch.cat([torch.full((b, 16), 98), _ids(b, n, 98)], 1),
            "pixel_values": torch.randn(b, 3, 32, 32),
        },
        {"input_ids": _TEXT_AXES, "pixel_values": _BATCH},
    ),
    "image_pair": Inputs(
        lambda b, n: {
            "pixel_values": torch.randn(b, 3, 32, 32),
            "decoder_input_ids": _ids(b, n),
        },
        {"pixel_values": _BATCH, "decoder_input_ids": _TEXT_AXES},
    ),
}
"""Kinds of inputs by name."""

_TINY = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
}  # fmt: skip
_TINY_TEXT = {
    **_TINY, "vocab_size": 99, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2,
    "pad_token_id": 0, "projection_dim": 16,
}  # fmt: skip
_TINY_VISION = {**_TINY, "image_size": 32, "patch_size": 8, "projection_dim": 16}


def _configuration(architecture: Architecture) -> Any:
    from transformers import AutoConfig

    parts: dict[str, dict[str, Any]] = {
        "clip": {"text_config": _TINY_TEXT, "vision_config": _TINY_VISION, "projection_dim": 16},
        "siglip": {"text_config": _TINY_TEXT, "vision_config": _TINY_VISION},
        "owlvit": {"text_config": _TINY_TEXT, "vision_config": _TINY_VISION, "projection_dim": 16},
        "blip": {"text_config": {**_TINY_TEXT, "encoder_hidden_size": 32},
                 "vision_config": _TINY_VISION, "projection_dim": 16},
        "llava": {
            "text_config": {**_TINY_TEXT, "model_type": "llama", "num_key_value_heads": 2},
            "vision_config": {**_TINY_VISION, "model_type": "clip_vision_model"},
            "image_token_index": 98, "image_token_id": 98, "vision_feature_layer": -1,
            "image_seq_length": 16,
        },
        "sam": {
            "vision_config": {
                "hidden_size": 32, "output_channels": 16, "num_hidden_layers": 2,
                "num_attention_heads": 4, "image_size": 32, "patch_size": 8, "mlp_dim": 64,
                "window_size": 2, "global_attn_indexes": [1], "num_pos_feats": 8,
            },
            "prompt_encoder_config": {"hidden_size": 16, "image_size": 32, "patch_size": 8,
                                      "mask_input_channels": 4},
            "mask_decoder_config": {"hidden_size": 16, "mlp_dim": 32, "num_hidden_layers": 1,
                                    "num_attention_heads": 2, "iou_head_hidden_dim": 16},
        },
    }  # fmt: skip
    if architecture.model_type == "vision-encoder-decoder":
        encoder = AutoConfig.for_model("vit", **_TINY_VISION)
        decoder = AutoConfig.for_model(
            "bert", **_TINY_TEXT, is_decoder=True, add_cross_attention=True
        )
        config = {"encoder": encoder.to_dict(), "decoder": decoder.to_dict()}
        return AutoConfig.for_model("vision-encoder-decoder", **config)
    if architecture.model_type == "detr":
        backbone = AutoConfig.for_model(
            "resnet", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic",
            out_features=["stage2"],
        )  # fmt: skip
        return AutoConfig.for_model(
            "detr", backbone_config=backbone, use_timm_backbone=False, backbone=None,
            use_pretrained_backbone=False, **architecture.config,
        )  # fmt: skip
    config = {**parts.get(architecture.model_type, {}), **architecture.config}
    return AutoConfig.for_model(architecture.model_type, **config)


class Primary(torch.nn.Module):
    """A model that takes its tensors by position and returns its main result."""

    def __init__(self, model: torch.nn.Module, names: list[str]) -> None:
        super().__init__()
        self.model = model
        self.names = names
        self.extra = {"use_cache": False} if hasattr(model.config, "use_cache") else {}

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        """Call the model with keyword arguments."""
        result = self.model(**dict(zip(self.names, tensors, strict=True)), **self.extra)
        for name in ("logits", "last_hidden_state", "predicted_depth", "logits_per_image"):
            value = getattr(result, name, None)
            if isinstance(value, torch.Tensor):
                return value
        return next(value for value in result.to_tuple() if isinstance(value, torch.Tensor))


def make_model(architecture: Architecture) -> Primary:
    """Return a model with random weights, ready to be called with the tensors of its inputs."""
    import transformers

    torch.manual_seed(0)
    config = _configuration(architecture)
    factory = getattr(transformers, architecture.auto)
    model = getattr(factory, "from_config", factory)(config).eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return Primary(model, list(INPUTS[architecture.inputs].dynamic))


def make_inputs(architecture: Architecture, sizes: Sizes) -> tuple[torch.Tensor, ...]:
    """Return the tensors of one call."""
    torch.manual_seed(1)
    made = INPUTS[architecture.inputs].make(*sizes)
    return tuple(made[name] for name in INPUTS[architecture.inputs].dynamic)
