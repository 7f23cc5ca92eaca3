package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	celopenapi "k8s.io/apiserver/pkg/cel/openapi"

	"github.com/levelwire/levelwire/server/internal/cel"
	"github.com/levelwire/levelwire/server/internal/openapi"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// typeChecks are the ValidatingAdmissionPolicies whose expressions are to be checked against
// the types of what they match. The result goes to status.typeChecking; it changes no
// decision.
type typeChecks struct {
	mu      sync.Mutex
	pending map[string]struct{}
	wake    chan struct{} // of length 1
}

func newTypeChecks() *typeChecks {
	return &typeChecks{pending: map[string]struct{}{}, wake: make(chan struct{}, 1)}
}

// add notes that a policy may have changed.
func (t *typeChecks) add(name string) {
	t.mu.Lock()
	t.pending[name] = struct{}{}
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *typeChecks) take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := slices.Sorted(maps.Keys(t.pending))
	clear(t.pending)
	return names
}

// checkAgainAfter is when a status that could not be written is tried again.
const checkAgainAfter = time.Second

// CheckTypes checks policies until ctx ends, each when its generation has changed. Run has
// to run, too. Every server may do it: the results are the same.
func (p *Policies) CheckTypes(ctx context.Context) {
	for {
		var again <-chan time.Time
		for _, name := range p.checks.take() {
			if err := p.checkTypes(ctx, name); err != nil && ctx.Err() == nil {
				p.log.Warn("the type checking of a ValidatingAdmissionPolicy cannot be written", "policy", name, "error", err)
				p.checks.add(name)
				again = time.After(checkAgainAfter)
			}
		}
		if again != nil {
			select {
			case <-again:
			case <-ctx.Done():
				return
			}
			continue
		}
		select {
		case <-p.checks.wake:
		case <-ctx.Done():
			return
		}
	}
}

// checkTypes brings the status of one policy up to date.
func (p *Policies) checkTypes(ctx context.Context, name string) error {
	r := p.kinds[0]
	checked, err := registry.GetAs[*admissionv1.ValidatingAdmissionPolicy](ctx, r, "", name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || checked.Generation <= checked.Status.ObservedGeneration {
		return err
	}
	warnings := p.warningsOf(checked)
	_, err = r.UpdateStatus(ctx, "", name, func(current resource.Object) (resource.Object, error) {
		if current == nil {
			return nil, apierrors.NewNotFound(r.Resource().GroupResource(), name)
		}
		changed := current.DeepCopyObject().(*admissionv1.ValidatingAdmissionPolicy)
		if changed.Generation == checked.Generation { // otherwise that is an event that comes next
			changed.Status.ObservedGeneration = checked.Generation
			changed.Status.TypeChecking = &admissionv1.TypeChecking{ExpressionWarnings: warnings}
		}
		return changed, nil
	}, registry.UpdateOptions{WriteOptions: registry.ServerWrites, Unconditional: true})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// warningsOf checks validations and their messages against each kind that the policy
// names without wildcards, as long as the compiler's work for all kinds is what it may be for one policy:
// ten kinds would be ten times as much. That is the same on every server.
func (p *Policies) warningsOf(policy *admissionv1.ValidatingAdmissionPolicy) []admissionv1.ExpressionWarning {
	var checkers []kindChecker
	work := 0
	for _, res := range p.typesToCheck(policy.Spec.MatchConstraints) {
		if work > cel.MaxWork {
			break
		}
		if c, err := p.newKindChecker(policy, res); err == nil {
			checkers = append(checkers, c)
			work += c.checker.Work()
		}
	}
	var warnings []admissionv1.ExpressionWarning
	left := maxWarningBytes
	check := func(at *field.Path, expression string) {
		var texts []string
		if left <= 0 {
			return
		}
		for _, c := range checkers {
			if work > cel.MaxWork {
				break
			}
			before := c.checker.Work()
			if problem := c.checker.Check(expression); problem != "" {
				texts = append(texts, fmt.Sprintf("%v: %s\n", c.kind, problem))
			}
			work += c.checker.Work() - before
		}
		if len(texts) > 0 {
			text := strings.Join(texts, "\n")
			text = strings.ToValidUTF8(text[:min(len(text), left)], "")
			left -= len(text)
			warnings = append(warnings, admissionv1.ExpressionWarning{FieldRef: at.String(), Warning: text})
		}
	}
	for i, v := range policy.Spec.Validations {
		at := field.NewPath("spec", "validations").Index(i)
		check(at.Child("expression"), v.Expression)
		if v.MessageExpression != "" {
			check(at.Child("messageExpression"), v.MessageExpression)
		}
	}
	return warnings
}

// kindChecker checks expressions for the objects of one kind.
type kindChecker struct {
	kind    schema.GroupVersionKind
	checker *cel.TypeChecker
}

func (p *Policies) newKindChecker(policy *admissionv1.ValidatingAdmissionPolicy, res *resource.Resource) (kindChecker, error) {
	types := cel.Types{Object: declType(res, "Object")}
	if params := policy.Spec.ParamKind; params != nil {
		types.HasParams = true
		if res := resourceOf(p.set, schema.FromAPIVersionAndKind(params.APIVersion, params.Kind)); res != nil {
			types.Params = declType(res, "Params")
		}
	}
	checker, err := cel.NewTypeChecker(types)
	if err != nil {
		return kindChecker{}, err
	}
	for _, v := range policy.Spec.Variables {
		checker.Declare(v.Name, v.Expression)
	}
	return kindChecker{res.GroupVersionKind(), checker}, nil
}

// declType returns the type of a kind's objects, or nil for any type.
func declType(res *resource.Resource, suffix string) *apiservercel.DeclType {
	t := common.SchemaDeclType(&celopenapi.Schema{Schema: openapi.Resolved(res)}, true)
	if t == nil {
		return nil
	}
	return t.MaybeAssignTypeName(res.Kind + suffix)
}

const (
	// maxTypes bounds the kinds that a policy is checked against.
	maxTypes = 10
	// maxCombinations bounds the groups, versions and resources of rules that are looked up.
	maxCombinations = 10_000
	// maxWarningBytes bounds what the status says of all expressions: the store takes no
	// object that is too large.
	maxWarningBytes = 256 << 10
)

// typesToCheck returns the resources that a policy names, in the order of their kinds.
func (p *Policies) typesToCheck(match *admissionv1.MatchResources) []*resource.Resource {
	if match == nil {
		return nil
	}
	found := map[schema.GroupVersionKind]*resource.Resource{}
	combinations := 0
rules:
	for i := range match.ResourceRules {
		rule := &match.ResourceRules[i].Rule
		if slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.APIVersions, "*") {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, version := range rule.APIVersions {
				for _, plural := range rule.Resources {
					if combinations++; combinations > maxCombinations || len(found) == maxTypes {
						break rules
					}
					if res := p.set.Resources().Lookup(group, version, plural); res != nil {
						found[res.GroupVersionKind()] = res
					}
				}
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *resource.Resource) int {
		return strings.Compare(a.Group+"\x00"+a.Version+"\x00"+a.Kind, b.Group+"\x00"+b.Version+"\x00"+b.Kind)
	})
}
