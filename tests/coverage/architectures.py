"""The architectures of `transformers` that the coverage of models is measured on.

One row each: a name, the kind of its inputs, the class to make it with, and its tiny configuration.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Architecture:
    """A model with random weights, small enough to compile in seconds.

    Attributes:
        name: Name of the row in the table of results.
        model_type: What `AutoConfig.for_model` calls the configuration.
        inputs: Kind of inputs; a key of `INPUTS`.
        auto: The class of `transformers` whose `from_config` makes the model.
        config: What differs from the defaults of the configuration.
    """

    name: str
    model_type: str
    inputs: str = "tokens"
    auto: str = "AutoModel"
    config: dict[str, Any] = field(default_factory=dict)


_TEXT = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_GROUPED = {**_TEXT, "num_key_value_heads": 2, "head_dim": 8}
_GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 99, "n_inner": 64}
_SEQ2SEQ = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
}
_T5 = {
    "vocab_size": 99,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "pad_token_id": 0,
    "decoder_start_token_id": 0,
}
_VIT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
    "num_channels": 3,
}
_WAV = {
    "vocab_size": 32,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "conv_dim": (16, 16, 16),
    "conv_kernel": (10, 3, 3),
    "conv_stride": (5, 2, 2),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "num_feat_extract_layers": 3,
}
_SWIN = {
    "image_size": 32,
    "patch_size": 4,
    "embed_dim": 16,
    "depths": [1, 1],
    "num_heads": [2, 4],
    "window_size": 2,
}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}

_CAUSAL = "AutoModelForCausalLM"


def _masked(name: str, model_type: str, **config: Any) -> Architecture:
    return Architecture(name, model_type, "tokens_mask", config={**_TEXT, **config})


def _causal(name: str, model_type: str, **config: Any) -> Architecture:
    return Architecture(name, model_type, "tokens", _CAUSAL, {**_GROUPED, **config})


def _image(name: str, model_type: str, inputs: str = "image", **config: Any) -> Architecture:
    return Architecture(name, model_type, inputs, config={**_VIT, **config})


ARCHITECTURES: tuple[Architecture, ...] = (
    # Text encoders, with a padding mask.
    _masked("bert", "bert"),
    Architecture("bert-mlm", "bert", "tokens_mask", "AutoModelForMaskedLM", _TEXT),
    _masked("roberta", "roberta", max_position_embeddings=66, pad_token_id=1),
    Architecture(
        "xlm-roberta-cls",
        "xlm-roberta",
        "tokens_mask",
        "AutoModelForSequenceClassification",
        {**_TEXT, "max_position_embeddings": 66},
    ),
    Architecture(
        "distilbert",
        "distilbert",
        "tokens_mask",
        config={
            "vocab_size": 99,
            "dim": 32,
            "n_layers": 2,
            "n_heads": 4,
            "hidden_dim": 64,
            "max_position_embeddings": 64,
        },
    ),
    _masked("electra", "electra", embedding_size=16),
    _masked("albert", "albert", embedding_size=16),
    _masked("deberta", "deberta", relative_attention=True, pos_att_type=["c2p", "p2c"]),
    _masked("deberta-v2", "deberta-v2", relative_attention=True, pos_att_type=["c2p", "p2c"]),
    _masked("mpnet", "mpnet"),
    _masked("modernbert", "modernbert", local_attention=8, global_attn_every_n_layers=2),
    _masked("longformer", "longformer", attention_window=[4, 4], max_position_embeddings=66),
    Architecture("fnet", "fnet", config={**_TEXT, "type_vocab_size": 2}),
    _masked("camembert", "camembert", max_position_embeddings=66),
    _masked("ernie", "ernie"),
    _masked("convbert", "convbert", embedding_size=32, conv_kernel_size=3),
    _masked("squeezebert", "squeezebert", embedding_size=32),
    _masked("roformer", "roformer"),
    _masked("nystromformer", "nystromformer", num_landmarks=4, segment_means_seq_len=4),
    _masked("layoutlm", "layoutlm"),
    # Text decoders.
    Architecture("gpt2", "gpt2", "tokens", _CAUSAL, _GPT),
    Architecture(
        "gpt_neo",
        "gpt_neo",
        "tokens",
        _CAUSAL,
        {
            "vocab_size": 99,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "intermediate_size": 64,
            "max_position_embeddings": 64,
            "window_size": 8,
            "attention_types": [[["global", "local"], 1]],
        },
    ),
    Architecture("gptj", "gptj", "tokens", _CAUSAL, {**_GPT, "rotary_dim": 4}),
    Architecture("gpt_neox", "gpt_neox", "tokens", _CAUSAL, _TEXT),
    Architecture("gpt_bigcode", "gpt_bigcode", "tokens", _CAUSAL, _GPT),
    Architecture("codegen", "codegen", "tokens", _CAUSAL, {**_GPT, "rotary_dim": 4, "n_ctx": 64}),
    Architecture(
        "opt",
        "opt",
        "tokens",
        _CAUSAL,
        {
            "vocab_size": 99,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "ffn_dim": 64,
            "num_attention_heads": 4,
            "max_position_embeddings": 64,
            "word_embed_proj_dim": 32,
        },
    ),
    Architecture(
        "bloom",
        "bloom",
        "tokens",
        _CAUSAL,
        {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    ),
    Architecture(
        "mpt",
        "mpt",
        "tokens",
        _CAUSAL,
        {"vocab_size": 99, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64},
    ),
    Architecture("falcon", "falcon", "tokens", _CAUSAL, _TEXT),
    Architecture("falcon-alibi", "falcon", "tokens", _CAUSAL, {**_TEXT, "alibi": True}),
    _causal("llama", "llama"),
    Architecture("llama-mask", "llama", "tokens_mask", _CAUSAL, _GROUPED),
    _causal("mistral", "mistral", sliding_window=None),
    _causal("mistral-window", "mistral", sliding_window=4),
    _causal("qwen2", "qwen2"),
    _causal("qwen3", "qwen3"),
    _causal("gemma", "gemma"),
    _causal("gemma2", "gemma2", sliding_window=4),
    Architecture("gemma3", "gemma3_text", "tokens", _CAUSAL, {**_GROUPED, "sliding_window": 4}),
    _causal("phi", "phi", num_key_value_heads=4),
    _causal("phi3", "phi3"),
    _causal("granite", "granite"),
    _causal("olmo", "olmo"),
    _causal("olmo2", "olmo2"),
    _causal("starcoder2", "starcoder2"),
    _causal("stablelm", "stablelm"),
    _causal("persimmon", "persimmon"),
    _causal("cohere", "cohere"),
    _causal("nemotron", "nemotron"),
    _causal("smollm3", "smollm3"),
    _causal("glm", "glm"),
    _causal("glm4", "glm4"),
    _causal("exaone4", "exaone4", sliding_window=4, sliding_window_pattern=2),
    _causal("helium", "helium"),
    Architecture(
        "biogpt",
        "biogpt",
        "tokens",
        _CAUSAL,
        {**_TEXT, "layerdrop": 0.0, "activation_dropout": 0.0},
    ),
    Architecture("ctrl", "ctrl", "tokens", _CAUSAL, {**_GPT, "dff": 64}),
    Architecture(
        "xglm",
        "xglm",
        "tokens",
        _CAUSAL,
        {
            "vocab_size": 99,
            "d_model": 32,
            "num_layers": 2,
            "attention_heads": 4,
            "ffn_dim": 64,
            "max_position_embeddings": 64,
        },
    ),
    # Mixtures of experts.
    _causal("mixtral", "mixtral", num_local_experts=4),
    _causal("qwen2_moe", "qwen2_moe", shared_expert_intermediate_size=32, **_EXPERTS),
    _causal("qwen3_moe", "qwen3_moe", **_EXPERTS),
    _causal("gpt_oss", "gpt_oss", num_local_experts=4, num_experts_per_tok=2, sliding_window=4),
    _causal("olmoe", "olmoe", num_experts=4, num_experts_per_tok=2),
    _causal("granitemoe", "granitemoe", num_local_experts=4, num_experts_per_tok=2),
    _causal(
        "deepseek_v3",
        "deepseek_v3",
        n_routed_experts=4,
        num_experts_per_tok=2,
        n_group=2,
        topk_group=1,
        kv_lora_rank=8,
        q_lora_rank=8,
        qk_rope_head_dim=8,
        v_head_dim=8,
        qk_nope_head_dim=8,
        moe_intermediate_size=32,
        first_k_dense_replace=1,
        head_dim=8,
        num_key_value_heads=4,
    ),
    Architecture(
        "dbrx",
        "dbrx",
        "tokens",
        _CAUSAL,
        {
            "vocab_size": 99,
            "d_model": 32,
            "n_layers": 2,
            "n_heads": 4,
            "max_seq_len": 64,
            "attn_config": {"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 10000.0},
            "ffn_config": {
                "ffn_hidden_size": 32,
                "moe_num_experts": 4,
                "moe_top_k": 2,
                "hidden_size": 32,
            },
        },
    ),
    # State space and recurrent.
    Architecture(
        "mamba",
        "mamba",
        "tokens",
        _CAUSAL,
        {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
    ),
    Architecture(
        "mamba2",
        "mamba2",
        "tokens",
        _CAUSAL,
        {
            "vocab_size": 99,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "state_size": 8,
            "num_heads": 8,
            "head_dim": 8,
            "n_groups": 1,
            "chunk_size": 8,
        },
    ),
    Architecture(
        "rwkv",
        "rwkv",
        "tokens",
        _CAUSAL,
        {
            "vocab_size": 99,
            "hidden_size": 32,
            "attention_hidden_size": 32,
            "num_hidden_layers": 2,
            "intermediate_size": 64,
            "context_length": 64,
        },
    ),
    _causal(
        "recurrent_gemma",
        "recurrent_gemma",
        attention_window_size=8,
        lru_width=32,
        block_types=["recurrent", "attention"],
    ),
    # Encoder and decoder.
    Architecture("t5", "t5", "pair", config=_T5),
    Architecture("t5-encoder", "t5", "tokens_mask", "T5EncoderModel", _T5),
    Architecture("mt5", "mt5", "pair", config=_T5),
    Architecture("bart", "bart", "pair", config=_SEQ2SEQ),
    Architecture("mbart", "mbart", "pair", config=_SEQ2SEQ),
    Architecture("pegasus", "pegasus", "pair", config=_SEQ2SEQ),
    Architecture("marian", "marian", "pair", config=_SEQ2SEQ),
    Architecture("m2m_100", "m2m_100", "pair", config=_SEQ2SEQ),
    Architecture("blenderbot-small", "blenderbot-small", "pair", config=_SEQ2SEQ),
    # Audio.
    Architecture(
        "whisper",
        "whisper",
        "spectrum_pair",
        "WhisperForConditionalGeneration",
        {**_SEQ2SEQ, "num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 32},
    ),
    Architecture(
        "whisper-encoder",
        "whisper",
        "spectrum",
        "WhisperForAudioClassification",
        {**_SEQ2SEQ, "num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 32},
    ),
    Architecture("wav2vec2", "wav2vec2", "wave", config=_WAV),
    Architecture(
        "wav2vec2-stable",
        "wav2vec2",
        "wave",
        config={**_WAV, "do_stable_layer_norm": True, "feat_extract_norm": "layer"},
    ),
    Architecture("hubert", "hubert", "wave", config=_WAV),
    Architecture("wavlm", "wavlm", "wave", config=_WAV),
    Architecture(
        "ast",
        "audio-spectrogram-transformer",
        "frames",
        config={
            **_VIT,
            "num_mel_bins": 16,
            "max_length": 24,
            "patch_size": 8,
            "frequency_stride": 8,
            "time_stride": 8,
        },
    ),
    Architecture(
        "encodec",
        "encodec",
        "waves",
        config={
            "num_filters": 4,
            "hidden_size": 16,
            "codebook_size": 16,
            "codebook_dim": 16,
            "upsampling_ratios": [4, 2],
            "num_lstm_layers": 1,
            "num_residual_layers": 1,
        },
    ),
    # Vision.
    _image("vit", "vit"),
    _image("deit", "deit"),
    _image("beit", "beit", use_relative_position_bias=True),
    _image("dinov2", "dinov2", mlp_ratio=2),
    _image("dinov2-interp", "dinov2", "image_large", mlp_ratio=2),
    _image("ijepa", "ijepa"),
    _image("yolos", "yolos", "image", image_size=[32, 32], num_detection_tokens=4),
    Architecture("swin", "swin", "image", config=_SWIN),
    Architecture("swinv2", "swinv2", "image", config=_SWIN),
    Architecture(
        "convnext",
        "convnext",
        "image",
        config={"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]},
    ),
    Architecture(
        "convnextv2",
        "convnextv2",
        "image",
        config={"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]},
    ),
    Architecture(
        "resnet",
        "resnet",
        "image",
        config={
            "embedding_size": 8,
            "hidden_sizes": [8, 16],
            "depths": [1, 1],
            "layer_type": "basic",
        },
    ),
    Architecture(
        "regnet",
        "regnet",
        "image",
        config={
            "embedding_size": 8,
            "hidden_sizes": [8, 8, 16, 16],
            "depths": [1, 1, 1, 1],
            "groups_width": 4,
        },
    ),
    Architecture(
        "poolformer",
        "poolformer",
        "image",
        config={"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]},
    ),
    Architecture("mobilenet_v1", "mobilenet_v1", "image", config={"depth_multiplier": 0.25}),
    Architecture("mobilenet_v2", "mobilenet_v2", "image", config={"depth_multiplier": 0.25}),
    Architecture(
        "efficientnet",
        "efficientnet",
        "image",
        config={"width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 320},
    ),
    Architecture(
        "segformer",
        "segformer",
        "image",
        config={
            "hidden_sizes": [8, 8, 16, 16],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 2, 2],
            "decoder_hidden_size": 16,
        },
    ),
    Architecture(
        "mobilevit",
        "mobilevit",
        "image",
        config={
            "image_size": 32,
            "hidden_sizes": [16, 16, 16],
            "neck_hidden_sizes": [8, 8, 8, 8, 16, 16, 16],
            "num_attention_heads": 2,
        },
    ),
    Architecture(
        "levit",
        "levit",
        "image_levit",
        config={
            "image_size": 64,
            "hidden_sizes": [16, 16, 16],
            "num_attention_heads": [2, 2, 2],
            "depths": [1, 1, 1],
            "key_dim": [8, 8, 8],
        },
    ),
    Architecture(
        "dpt",
        "dpt",
        "image",
        "DPTForDepthEstimation",
        {
            **_VIT,
            "num_hidden_layers": 4,
            "backbone_out_indices": [0, 1, 2, 3],
            "neck_hidden_sizes": [8, 8, 8, 8],
            "fusion_hidden_size": 8,
            "is_hybrid": False,
        },
    ),
    Architecture(
        "detr",
        "detr",
        "image_detr",
        config={
            "d_model": 32,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 32,
            "decoder_ffn_dim": 32,
            "num_queries": 5,
        },
    ),
    Architecture(
        "videomae", "videomae", "video", config={**_VIT, "num_frames": 4, "tubelet_size": 2}
    ),
    Architecture("timesformer", "timesformer", "video", config={**_VIT, "num_frames": 4}),
    Architecture("sam", "sam", "sam"),
    # Several kinds of input.
    Architecture("clip", "clip", "text_image"),
    Architecture("siglip", "siglip", "text_image"),
    Architecture("owlvit", "owlvit", "text_image"),
    Architecture("blip", "blip", "text_image"),
    Architecture("vilt", "vilt", "text_image_joint", config={**_TEXT, **_VIT}),
    Architecture("llava", "llava", "llava"),
    Architecture(
        "vision-encoder-decoder",
        "vision-encoder-decoder",
        "image_pair",
        "VisionEncoderDecoderModel",
    ),
    # Time series.
    Architecture(
        "patchtst",
        "patchtst",
        "series",
        config={
            "num_input_channels": 2,
            "context_length": 16,
            "patch_length": 4,
            "patch_stride": 4,
            "num_hidden_layers": 2,
            "d_model": 16,
            "num_attention_heads": 2,
            "ffn_dim": 32,
            "num_targets": 2,
        },
    ),
)
