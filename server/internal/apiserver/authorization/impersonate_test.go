package authorization

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// FuzzImpersonate: whatever the headers say, without a user name there is no
// impersonation.
func FuzzImpersonate(f *testing.F) {
	f.Add("jane", "dev", "Scopes%2f", "v")
	f.Add("", "dev", "", "")
	f.Fuzz(func(t *testing.T, user, group, key, value string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header["Impersonate-User"] = []string{user}
		r.Header["Impersonate-Group"] = []string{group}
		r.Header["Impersonate-Extra-"+key] = []string{value}
		wanted, present, err := impersonated(r.Header)
		if present != (wanted.Name != "") || present && err != nil {
			t.Errorf("%+v, %v, %v", wanted, present, err)
		}
		if len(wanted.Extra) != 1 || count(impersonations(wanted, "", verbImpersonate, &wanted, false)) < 2 {
			t.Errorf("%+v", wanted)
		}
	})
}
