package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Guarantee is one promise of the API.
type Guarantee struct {
	// Name is stable: "list/limit-ignored-at-rv-0".
	Name string
	// Sentence says what is promised.
	Sentence string
	// Source is where: a KEP, a page of the documentation, or the behaviour of
	// kube-apiserver that clients have come to depend on.
	Source string
	// Slow checks take more than half a minute and run only when asked for.
	Slow bool

	check func(*Env)
}

// Verdict is the outcome of a check.
type Verdict string

// The verdicts.
const (
	Pass Verdict = "pass"
	Fail Verdict = "fail"
	Skip Verdict = "skip"
	// NotDecided says that the server was too slow for the check to find out.
	NotDecided Verdict = "not decided"
)

// Result is what a check has found.
type Result struct {
	Name     string        `json:"name"`
	Sentence string        `json:"sentence"`
	Source   string        `json:"source"`
	Verdict  Verdict       `json:"verdict"`
	Duration time.Duration `json:"durationNanoseconds"`
	// Reason says why a check failed or was skipped, or what took too long for
	// it to be decided.
	Reason string `json:"reason,omitempty"`
	// Evidence holds the last requests and answers before a failure, or before
	// what took too long.
	Evidence []string `json:"evidence,omitempty"`
}

// The sources that guarantees cite.
const (
	sourceConcepts  = "Kubernetes API Concepts"
	sourceChunking  = "KEP-365 (paginated lists)"
	sourceBookmarks = "KEP-956 (watch bookmarks)"
	sourceStreaming = "KEP-3157 (watch-list)"
	sourceCacheRead = "KEP-2340 (consistent reads from cache)"
	sourceSnapshots = "KEP-4988 (snapshottable watch cache)"
	sourceVersions  = "KEP-5504 (comparable resource versions)"
	sourceShards    = "KEP-5866 (sharded list and watch)"
	sourceCBOR      = "KEP-4222 (CBOR)"
	sourceDiscovery = "KEP-3352 (aggregated discovery)"
	sourceTables    = "Kubernetes API Concepts: receiving resources as tables"
	sourceApply     = "KEP-555 (server-side apply)"
	sourceObserved  = "behaviour of kube-apiserver that clients rely on"
	sourceOurs      = "promise of Levelwire, beyond kube-apiserver's"
)

// Guarantees returns all guarantees, by topic. The slice is the caller's.
func Guarantees() []Guarantee {
	return slices.Concat(
		listGuarantees, listErrorGuarantees, pageGuarantees, fieldGuarantees, getGuarantees,
		watchGuarantees, watchErrorGuarantees, initialGuarantees, bookmarkGuarantees,
		selectionGuarantees, deletionGuarantees, formGuarantees, watchFormGuarantees,
		writeErrorGuarantees, applyGuarantees, discoveryGuarantees, shardGuarantees, streamGuarantees,
	)
}

// validate finds mistakes in the table itself.
func validate(guarantees []Guarantee) error {
	seen := map[string]bool{}
	for _, g := range guarantees {
		switch {
		case seen[g.Name]:
			return fmt.Errorf("guarantee %s is there twice", g.Name)
		case !strings.Contains(g.Name, "/") || g.Sentence == "" || g.Source == "" || g.check == nil:
			return fmt.Errorf("guarantee %q is incomplete", g.Name)
		}
		seen[g.Name] = true
	}
	return nil
}
