package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestMissingRights asks an upstream for each right that rbac.yaml has, but for lists and watches.
func TestMissingRights(t *testing.T) {
	const reviews = "create selfsubjectaccessreviews.authorization.k8s.io"
	for name, test := range map[string]struct {
		answers func(*authorizationv1.SelfSubjectAccessReviewSpec) int // 201: allowed, 200: denied, otherwise an error
		lacks   string
		err     func(error) bool
	}{
		"all": {func(*authorizationv1.SelfSubjectAccessReviewSpec) int { return 201 }, "", nil},
		"no impersonation": {func(s *authorizationv1.SelfSubjectAccessReviewSpec) int {
			return either(s.ResourceAttributes == nil || s.ResourceAttributes.Verb == "create", 201, 200)
		}, "impersonate users, impersonate groups, impersonate serviceaccounts, impersonate uids.authentication.k8s.io, " +
			"impersonate userextras.authentication.k8s.io/authentication.kubernetes.io/credential-id", nil},
		"no token reviews": {func(s *authorizationv1.SelfSubjectAccessReviewSpec) int {
			return either(s.ResourceAttributes == nil || s.ResourceAttributes.Resource != "tokenreviews", 201, 200)
		}, "create tokenreviews.authentication.k8s.io", nil},
		"no discovery": {func(s *authorizationv1.SelfSubjectAccessReviewSpec) int {
			return either(s.ResourceAttributes != nil, 201, 200)
		}, "get /version, get /api, get /api/v1, get /apis, get /apis/apps/v1, get /openapi/v3", nil},
		"no such question": {func(*authorizationv1.SelfSubjectAccessReviewSpec) int { return 404 }, "", func(err error) bool { return !apierrors.IsForbidden(err) }},
		"no credentials":   {func(*authorizationv1.SelfSubjectAccessReviewSpec) int { return 403 }, reviews, apierrors.IsForbidden},
		"away in between": {func(s *authorizationv1.SelfSubjectAccessReviewSpec) int {
			return either(s.ResourceAttributes != nil && s.ResourceAttributes.Verb == "create", 200, 503)
		}, "create tokenreviews.authentication.k8s.io, create subjectaccessreviews.authorization.k8s.io", apierrors.IsServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			r := relayOf(t, func(w http.ResponseWriter, req *http.Request) {
				var review authorizationv1.SelfSubjectAccessReview
				if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
					t.Error(err)
				}
				code := test.answers(&review.Spec)
				if code > 299 {
					w.WriteHeader(code)
					return
				}
				review.TypeMeta = metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"}
				review.Status.Allowed = code == 201
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusCreated)
				_ = json.NewEncoder(w).Encode(review)
			})
			lacks, err := r.missingRights(t.Context(), requiredRights)
			if got := strings.Join(lacks, ", "); got != test.lacks {
				t.Errorf("lacks %q, want %q", got, test.lacks)
			}
			if (err == nil) != (test.err == nil) || test.err != nil && !test.err(err) {
				t.Errorf("%v", err)
			}
		})
	}
}

func either(is bool, then, otherwise int) int {
	if is {
		return then
	}
	return otherwise
}

// TestMissingRightsAreLogged when a relay has met its upstream, and that says so twice: without
// them every user but the administrator is refused, and sees only that.
func TestMissingRightsAreLogged(t *testing.T) {
	away := errors.New("away")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: authorizationv1.GroupName, Resource: "selfsubjectaccessreviews"}, "", errors.New("anonymous"))
	type answer struct {
		lacks string
		err   error
	}
	for name, test := range map[string]struct {
		answers []answer
		took    time.Duration
		logged  []string // what each line says
	}{
		"all rights":         {[]answer{{}}, 0, nil},
		"some":               {[]answer{{lacks: "a"}, {lacks: "a"}}, confirmRights, []string{"lacks=a\n"}},
		"roles not loaded":   {[]answer{{lacks: "a"}, {}}, confirmRights, nil},
		"roles half loaded":  {[]answer{{lacks: "ab"}, {lacks: "b"}, {lacks: "b"}}, 2 * confirmRights, []string{"lacks=b\n"}},
		"away":               {[]answer{{err: away}, {err: away}, {}}, 2 * retryRights, nil},
		"away in between":    {[]answer{{lacks: "a", err: away}, {lacks: "a", err: away}, {lacks: "a"}}, 2 * retryRights, []string{"lacks=a\n"}},
		"away, then more":    {[]answer{{lacks: "a", err: away}, {lacks: "a", err: away}, {lacks: "ab"}, {lacks: "ab"}}, 2*retryRights + confirmRights, []string{"lacks=a\n", "lacks=ab\n"}},
		"may not ask":        {[]answer{{lacks: "s", err: forbidden}, {lacks: "s", err: forbidden}}, confirmRights, []string{"as if the kubeconfig had no credentials"}},
		"may ask after that": {[]answer{{lacks: "s", err: forbidden}, {}}, confirmRights, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				r := &Relay{opts: Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
				begin := time.Now()
				r.logLacking(t.Context(), func(context.Context) ([]string, error) {
					next := test.answers[0]
					test.answers = test.answers[1:]
					if next.lacks == "" {
						return nil, next.err
					}
					return []string{next.lacks}, next.err
				}, r.warnOfMissing)
				if took := time.Since(begin); took != test.took || len(test.answers) > 0 {
					t.Errorf("ended after %s, %d answers early; want %s", took, len(test.answers), test.took)
				}
				lines := slices.Collect(strings.Lines(log.String()))
				if len(lines) != len(test.logged) {
					t.Fatalf("logged %q, want %q", lines, test.logged)
				}
				for i, line := range lines {
					if !strings.Contains(line, test.logged[i]) {
						t.Errorf("logged %q, want %q", line, test.logged[i])
					}
				}
			})
		})
	}
}
