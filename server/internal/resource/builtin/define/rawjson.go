package define

import (
	"bytes"
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// KeepJSON gives raw JSON the bytes that it had before, if these have the same value: with other
// spaces, another order of members or other escapes. So a client that sends back what it has read
// changes nothing, whatever it writes JSON with.
func KeepJSON(raw *runtime.RawExtension, old runtime.RawExtension) {
	if !bytes.Equal(raw.Raw, old.Raw) && sameJSON(raw.Raw, old.Raw) {
		raw.Raw = old.Raw
	}
}

// sameJSON compares two pieces of JSON. A number is another one if it is written in another way.
func sameJSON(a, b []byte) bool {
	valueOfA, okA := decodeJSON(a)
	valueOfB, okB := decodeJSON(b)
	return okA && okB && reflect.DeepEqual(valueOfA, valueOfB)
}

func decodeJSON(raw []byte) (value any, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err := decoder.Decode(&value)
	return value, err == nil
}
