package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// filed is a file in a volume, and what it is made of where a volume has several such.
type filed struct {
	path, source string
}

func (f filed) String() string {
	if f.source == "" {
		return fmt.Sprintf("%q", f.path)
	}
	return fmt.Sprintf("%q (%s)", f.path, f.source)
}

// overlapWarnings are about files of a volume of which one would replace another, or would have to
// be a folder.
func overlapWarnings(v *corev1.Volume) []string {
	var warnings []string
	var before []filed
	overlaps := func(kind string, files []filed) {
		for _, f := range files {
			f.path = strings.TrimRight(f.path, "/")
			for _, other := range before {
				if overlap(f, other) && len(warnings) < maxWarnings {
					warnings = append(warnings, fmt.Sprintf("volume %q (%s): overlapping paths: %s with %s", v.Name, kind, f, other))
				}
			}
			if len(before) < maxCompared {
				before = append(before, f)
			}
		}
	}
	switch {
	case v.ConfigMap != nil:
		overlaps(fmt.Sprintf("ConfigMap %q", v.ConfigMap.Name), keysOf(v.ConfigMap.Items, ""))
	case v.Secret != nil:
		overlaps(fmt.Sprintf("Secret %q", v.Secret.SecretName), keysOf(v.Secret.Items, ""))
	case v.DownwardAPI != nil:
		overlaps("DownwardAPI", fieldsOf(v.DownwardAPI.Items, ""))
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			source := &v.Projected.Sources[i]
			if *source == (corev1.VolumeProjection{}) {
				warnings = append(warnings, fmt.Sprintf("volume %q (Projected) has no sources provided", v.Name))
			}
			overlaps("Projected", projectedFiles(source))
		}
	}
	return warnings
}

func overlap(a, b filed) bool {
	if len(a.path) > len(b.path) {
		a, b = b, a
	}
	rest, ok := strings.CutPrefix(b.path, a.path)
	return a.path != "" && ok && (rest == "" || rest[0] == '/')
}

func keysOf(items []corev1.KeyToPath, source string) []filed {
	var files []filed
	for _, item := range items {
		files = append(files, filed{item.Path, source})
	}
	return files
}

func fieldsOf(items []corev1.DownwardAPIVolumeFile, source string) []filed {
	var files []filed
	for _, item := range items {
		files = append(files, filed{item.Path, source})
	}
	return files
}

func projectedFiles(source *corev1.VolumeProjection) []filed {
	switch {
	case source.ConfigMap != nil && source.ConfigMap.Items != nil:
		return keysOf(source.ConfigMap.Items, fmt.Sprintf("ConfigMap %q", source.ConfigMap.Name))
	case source.Secret != nil && source.Secret.Items != nil:
		return keysOf(source.Secret.Items, fmt.Sprintf("Secret %q", source.Secret.Name))
	case source.DownwardAPI != nil && source.DownwardAPI.Items != nil:
		return fieldsOf(source.DownwardAPI.Items, "DownwardAPI")
	case source.ServiceAccountToken != nil:
		return []filed{{source.ServiceAccountToken.Path, "ServiceAccountToken"}}
	case source.ClusterTrustBundle != nil:
		bundle := source.ClusterTrustBundle
		return []filed{{bundle.Path, fmt.Sprintf("ClusterTrustBundle %q", define.ValueOr(bundle.Name, define.ValueOr(bundle.SignerName, "")))}}
	case source.PodCertificate != nil:
		c := source.PodCertificate
		// Those without a path are none: overlap sees to it.
		return []filed{{c.CertificateChainPath, "PodCertificate chain"}, {c.KeyPath, "PodCertificate key"}, {c.CredentialBundlePath, "PodCertificate credential bundle"}}
	}
	return nil
}
