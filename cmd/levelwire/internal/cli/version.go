package cli

import "runtime/debug"

// Release is set by the linker for releases:
// -ldflags "-X github.com/levelwire/levelwire/cmd/levelwire/internal/cli.Release=v1.2.3".
var Release string

// Version is the release, or what the Go toolchain noted about the build.
func Version() string {
	if Release != "" {
		return Release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
			return "dev-" + setting.Value[:12]
		}
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}
