"""What hatchling asks while it builds a wheel: facts that the project's own pyproject.toml has,
and the tag of the platform. scripts/build-wheel.py lays this file beside a copy of that one."""

import pathlib
import tomllib

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

#: Commands of the wheel beside those of all installations: functions of attn.commands.
SCRIPTS = {
    "attn-compile": "attn.commands:run_attn_compile",
    "attn-sim": "attn.commands:run_attn_sim",
}


class MetadataHook(MetadataHookInterface):
    """Fills in what the project file says is dynamic."""

    def update(self, metadata):
        text = (pathlib.Path(self.root) / "project.toml").read_text(encoding="utf-8")
        project = tomllib.loads(text)["project"]
        project["scripts"] |= SCRIPTS
        project |= {"license": "Apache-2.0 WITH LLVM-exception", "readme": "README.md"}
        for name in metadata["dynamic"]:
            metadata[name] = project[name]


class PlatformHook(BuildHookInterface):
    """Names the platform."""

    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = self.config["tag"]
