package discovery

import (
	"net/http"
	"runtime"
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// kubernetesVersion is the release whose API is spoken. kubectl and helm
// compare major and minor with their own.
const kubernetesVersion, kubernetesMajor, kubernetesMinor = "v1.37.0", "1", "37"

func (h *Handler) serveVersion(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, r, version.Info{
		Major: kubernetesMajor, Minor: kubernetesMinor,
		GitVersion:   kubernetesVersion + "+levelwire-" + buildMetadata(h.config.Version),
		GitTreeState: "clean",
		GoVersion:    runtime.Version(),
		Compiler:     runtime.Compiler,
		Platform:     runtime.GOOS + "/" + runtime.GOARCH,
	})
}

// buildMetadata keeps what semantic versioning allows after the plus sign.
func buildMetadata(v string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-':
			return c
		}
		return '-'
	}, v)
}
