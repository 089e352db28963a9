"""Makes a loaded model quick without a compiler: merges, rearranges and joins what transformers computes in pieces.

Layer by layer, each held against what the untouched layer gave (fusion_check.py): first the whole layer as one function
(fusion_layer.py), then its parts (fusion_parts.py), else it stays as it is. Last the output matrix and the embedding
(fusion_embedding.py). A plain weight is given up as soon as its successor has been checked: memory never holds the
model twice. Knows nothing of blocks and steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from backends.torch_engine import attention_hook
from backends.torch_engine.fusion_check import FAULTS, LayerRecord, Recorder, is_close, record, run
from backends.torch_engine.fusion_embedding import packed_embedding
from backends.torch_engine.fusion_layer import Rotation, fuse_layer
from backends.torch_engine.fusion_linear import PackedLinear, can_pack, is_linear
from backends.torch_engine.fusion_norm import FusedNormModule, fused_norm


@dataclass(frozen=True, slots=True)
class FusionReport:
    """What was done to a model.

    Attributes:
        layers: how many it has.
        whole: how many became one function.
        by_parts: how many had parts exchanged.
        packed_matrices: how many matrices lie in oneDNN's layout.
        packs_output: whether the output matrix does.
        max_difference: the largest difference of a logit to the untouched model's, over a few tokens.
        notes: why a layer or the output stayed as it was; each reason once.
    """

    layers: int = 0
    whole: int = 0
    by_parts: int = 0
    packed_matrices: int = 0
    packs_output: bool = False
    max_difference: float = 0.0
    notes: tuple[str, ...] = ()


def fuse(module: nn.Module) -> FusionReport:
    """Fuse a causal language model of transformers whose attention is ours; it stays the same object.

    Not to be called during a step: for the check, attention is answered by the check itself, and by nobody afterwards.
    """
    fusion = _Fusion(module)
    with torch.inference_mode():
        return fusion.run()


class _Fusion:
    """One model on its way."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._layers = decoder_layers(module)
        self._rotation = Rotation()
        self._recorder = Recorder()
        self._notes: dict[str, None] = {}
        self._counts = {"whole": 0, "by_parts": 0}

    def run(self) -> FusionReport:
        """Do all of it."""
        try:
            records, logits = record(self._module, self._layers)
        except FAULTS as error:
            return FusionReport(layers=len(self._layers), notes=(f"the model cannot be tried: {error}",))
        attention_hook.attach(self._module, self._recorder)
        try:
            for layer, noted in zip(self._layers, records, strict=True):
                self._fuse(layer, noted)
        finally:
            attention_hook.attach(self._module, None)
            self._rotation.forget()
        self._fuse_last_norm()
        packs_output = self._pack_output()
        difference = (run(self._module, self._recorder).float() - logits.float()).abs().max()
        self._recorder.calls.clear()
        self._rotation.forget()
        return FusionReport(
            layers=len(self._layers),
            whole=self._counts["whole"],
            by_parts=self._counts["by_parts"],
            packed_matrices=sum(isinstance(part, PackedLinear) for part in self._module.modules()),
            packs_output=packs_output,
            max_difference=float(difference),
            notes=tuple(self._notes),
        )

    def _fuse(self, layer: nn.Module, noted: LayerRecord) -> None:
        """Fuse a layer as far as its values stay the same."""
        from backends.torch_engine.fusion_parts import fuse_parts

        if noted.output is None:
            self._notes["a layer was not run, or returns more than a tensor"] = None
            return
        if len(noted.calls) == 1 and "position_embeddings" in noted.options:
            undo = fuse_layer(layer, noted.attention_options(), self._rotation)
            if undo is not None:
                fault = noted.fault(layer, self._recorder)
                if not fault:
                    self._counts["whole"] += 1
                    return
                self._notes[f"as a whole: {fault}"] = None
                undo()
        undo = fuse_parts(layer)
        fault = noted.fault(layer, self._recorder)
        if fault:
            self._notes[f"by parts: {fault}"] = None
            undo()
        else:
            self._counts["by_parts"] += 1

    def _fuse_last_norm(self) -> None:
        """Exchange the norms that stand beside the layers: in most models the last one."""
        inside = {id(part) for layer in self._layers for part in layer.modules()}
        for owner in list(self._module.modules()):
            for name, part in list(owner._modules.items()):
                if part is None or id(part) in inside or isinstance(part, FusedNormModule):
                    continue
                norm = fused_norm(part)
                if norm is not None:
                    owner._modules[name] = FusedNormModule(norm, part.weight)  # type: ignore[arg-type]

    def _pack_output(self) -> bool:
        """Rearrange the output matrix; where it also embeds the tokens, only if the embedding can read it there."""
        module: Any = self._module
        output, embedding = module.get_output_embeddings(), module.get_input_embeddings()
        if not is_linear(output) or not can_pack(output.weight.dtype, output.weight.device):
            return False
        is_tied = output.weight.data_ptr() == embedding.weight.data_ptr()
        packed = PackedLinear(output.weight.detach(), None if output.bias is None else output.bias.detach())
        generator = torch.Generator().manual_seed(0)
        x = torch.randn((1, 2, output.in_features), generator=generator).to(output.weight.dtype)
        if not is_close(packed(x), output(x)):
            self._notes["output matrix: another output"] = None
            return False
        if is_tied:
            reader = packed_embedding(packed, embedding)
            if reader is None:
                self._notes["output matrix: tied, and its rows are not found when rearranged"] = None
                return False
            module.set_input_embeddings(reader)
        module.set_output_embeddings(packed)
        return True


def decoder_layers(module: nn.Module) -> list[nn.Module]:
    """Return a model's layers: the longest list of modules that each know their number somewhere inside."""
    found: list[nn.Module] = []
    for part in module.modules():
        if isinstance(part, nn.ModuleList) and len(part) > len(found):
            knows = [any(isinstance(getattr(m, "layer_idx", None), int) for m in layer.modules()) for layer in part]
            if all(knows):
                found = list(part)
    return found
