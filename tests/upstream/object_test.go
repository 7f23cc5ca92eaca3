package upstream

import (
	"strings"
	"testing"
)

// TestWhatServersChooseIsNoDifference: two lists say the same but for names, uids, times, addresses, authorities, and
// the owners of what a server itself or the clock decides about.
func TestWhatServersChooseIsNoDifference(t *testing.T) {
	list := func(replace ...string) []object {
		t.Helper()
		objects, err := readObjects([]byte(strings.NewReplacer(replace...).Replace(`{"items":[{"kind":"Pod","metadata":{"name":"web-5d8f7c9b4-x2k4z","generateName":"web-5d8f7c9b4-",
			"uid":"0a4a8e0c-6d0b-4d4b-8f2e-0d6c3a1b2c3d","resourceVersion":"5","managedFields":[
			{"manager":"levelwire","time":"2027-01-01T00:00:00Z","fieldsV1":{"f:status":{"f:conditions":{"k":{"f:lastTransitionTime":{}}}}}},
			{"manager":"levelwire","time":"2027-01-01T00:00:00Z","fieldsV1":{"f:status":{"f:used":{}}}}]},
			"status":{"podIP":"10.0.0.1","message":"pods \"web-x2k4z\" is forbidden"},
			"data":{"ca.crt":"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"}}]}`)))
		if err != nil {
			t.Fatal(err)
		}
		return objects
	}
	if d := differences(list(), list("x2k4z", "bc7d9", "0a4a", "1b4a", `"5"`, `"77"`, "T00:", "T01:", "10.0.0.1", "10.9.9.9", "MIIB", "MIIC", "levelwire", "kube-apiserver")); len(d) > 0 {
		t.Errorf("differences: %q", d)
	}
	ofTime := `{"manager":"levelwire","time":"2027-01-01T00:00:00Z","fieldsV1":{"f:status":{"f:conditions":{"k":{"f:lastTransitionTime":{}}}}}},`
	if d := differences(list(), list(ofTime, "")); len(d) > 0 {
		t.Errorf("another owner of a time: %q", d)
	}
	if d := differences(list(), list("f:lastTransitionTime", "f:status")); len(d) != 1 {
		t.Errorf("another owner: %q", d)
	}
	if d := differences(list("web-5d8f7c9b4-x2k4z", "kube-root-ca.crt", "generateName", "by"), list("web-5d8f7c9b4-x2k4z", "kube-root-ca.crt", "generateName", "by", "levelwire", "kube-controller-manager")); len(d) > 0 {
		t.Errorf("who has published the authority: %q", d)
	}
	if d := differences(list(), list("forbidden", "allowed")); len(d) != 1 || !strings.Contains(d[0], "is forbidden") {
		t.Errorf("another message: %q", d)
	}
}

// TestOneObjectIsRead: kubectl prints no list if one object is named.
func TestOneObjectIsRead(t *testing.T) {
	objects, err := readObjects([]byte(`{"kind":"Namespace","metadata":{"name":"held"}}`))
	if err != nil || len(objects) != 1 || objects[0].name != "Namespace held" {
		t.Errorf("%+v %v", objects, err)
	}
}
