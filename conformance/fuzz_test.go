package conformance

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// FuzzDecoders: whatever a server sends, the checks' decoders return an error
// or a value, and do not reserve memory on its word.
func FuzzDecoders(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":{"kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"5"}}}`))
	f.Add([]byte(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410}}`))
	f.Add([]byte{0, 0, 0, 7, 10, 5, 'A', 'D', 'D', 'E', 'D'})
	f.Add([]byte{255, 255, 255, 255, 0})
	f.Add(append(bytes.Clone(envelopePrefix), 10, 0))
	f.Add([]byte(encodeToken(token{"meta.k8s.io/v1", 5, "a\x00"})))
	f.Fuzz(func(t *testing.T, data []byte) {
		if v, err := decodeEvent(data); err == nil && v.Type == "ERROR" {
			if s, err := v.status(); err == nil && s.Kind != "Status" {
				t.Errorf("%q is a status", data)
			}
		}
		if v, err := readFrame(bytes.NewReader(data)); err == nil && len(v.Object.Raw) > len(data) {
			t.Errorf("%d bytes became %d", len(data), len(v.Object.Raw))
		}
		_, _ = openEnvelope(data, new(corev1.ConfigMap))
		if decoded, err := decodeToken(string(data)); err == nil {
			if again, err := decodeToken(encodeToken(decoded)); err != nil || again != decoded {
				t.Errorf("%+v became %+v: %v", decoded, again, err)
			}
		}
		if n, err := parseVersion(string(data)); err == nil && n == 0 {
			t.Errorf("%q is version 0", data)
		}
	})
}
