package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/status"
)

// limitAnnotation describes in a pod what LimitRanger has set in it.
const limitAnnotation = "kubernetes.io/limit-ranger"

// limits fills in the default requests and limits of a namespace's LimitRanges, and
// refuses pods and claims that are outside of the ranges.
type limits struct{ set *registry.Set }

// limitedPod returns a pod that is being created or resized, and nil for everything else: no other
// change can touch what a pod requests. What is being deleted is left alone.
func limitedPod(q *registry.Request) *corev1.Pod {
	creates := q.Operation == registry.Create && q.Subresource == ""
	resizes := q.Operation == registry.Update && q.Subresource == "resize"
	if q.Resource.GroupResource() != podsResource || !creates && !resizes || isBeingDeleted(q) {
		return nil
	}
	pod, _ := q.Object.(*corev1.Pod)
	return pod
}

// limitedClaim returns a claim that is being created or changed in whatever way, and nil for everything else.
func limitedClaim(q *registry.Request) *corev1.PersistentVolumeClaim {
	writes := q.Operation == registry.Create || q.Operation == registry.Update
	if q.Resource.GroupResource() != claimsResource || !writes || q.Subresource != "" || isBeingDeleted(q) {
		return nil
	}
	claim, _ := q.Object.(*corev1.PersistentVolumeClaim)
	return claim
}

func isBeingDeleted(q *registry.Request) bool {
	return q.Old != nil && q.Old.GetDeletionTimestamp() != nil
}

// fill sets the defaults in a pod. What it has set in a new one stands in an annotation, which
// a resize cannot change.
func (l limits) fill(ctx context.Context, q *registry.Request) error {
	pod := limitedPod(q)
	if pod == nil {
		return nil
	}
	ranges, err := l.rangesOf(ctx, q.Namespace)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		if err := boundLimits(q, pod, r); err != nil {
			return err
		}
		set := fillIn(pod, r)
		if len(set) == 0 || q.Operation != registry.Create {
			continue
		}
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[limitAnnotation] = "LimitRanger plugin set: " + strings.Join(set, "; ")
	}
	return nil
}

// maxLimited is how many amounts of a range are looked at for one pod: a range may name thousands,
// for each of thousands of containers.
const maxLimited = 200_000

// boundLimits refuses a pod with more containers than a range of so many amounts is meant for.
func boundLimits(q *registry.Request, pod *corev1.Pod, r *corev1.LimitRange) error {
	amounts := 0
	for i := range r.Spec.Limits {
		item := &r.Spec.Limits[i]
		if item.Type == corev1.LimitTypeContainer {
			amounts += len(item.Max) + len(item.Min) + len(item.Default) + len(item.DefaultRequest) + len(item.MaxLimitRequestRatio)
		}
	}
	containers := len(pod.Spec.Containers) + len(pod.Spec.InitContainers)
	if amounts*containers <= maxLimited {
		return nil
	}
	return q.Forbidden(fmt.Errorf("the LimitRange %s has %d amounts, and the pod %d containers, for each of which they are: at most %d together", r.Name, amounts, containers, maxLimited))
}

// check refuses what is outside of a range. Like Kubernetes it names the faults of the first such range only.
func (l limits) check(ctx context.Context, q *registry.Request) error {
	pod, claim := limitedPod(q), limitedClaim(q)
	if pod == nil && claim == nil {
		return nil
	}
	ranges, err := l.rangesOf(ctx, q.Namespace)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		var problems []error
		if pod != nil {
			if err := boundLimits(q, pod, r); err != nil {
				return err
			}
			problems = checkPod(pod, r)
		} else {
			problems = checkClaim(claim, r)
		}
		if len(problems) > 0 {
			return q.Forbidden(errors.New(status.Texts(problems)))
		}
	}
	return nil
}

func (l limits) rangesOf(ctx context.Context, namespace string) ([]*corev1.LimitRange, error) {
	r, ok := l.set.Lookup("", "v1", "limitranges")
	if !ok {
		return nil, nil
	}
	snapshot, err := r.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	var ranges []*corev1.LimitRange
	for o := range snapshot.Range(namespace+"/", "") {
		decoded, err := registry.DecodeAs[*corev1.LimitRange](ctx, r, o)
		if err != nil {
			return nil, err
		}
		ranges = append(ranges, decoded)
	}
	return ranges, nil
}

// fillIn sets the defaults of a range in the containers of a pod that state no
// requests or limits, and returns what it has set.
func fillIn(pod *corev1.Pod, r *corev1.LimitRange) []string {
	var set []string
	for i := range r.Spec.Limits {
		item := &r.Spec.Limits[i]
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		for j := range pod.Spec.Containers {
			set = append(set, fillContainer(&pod.Spec.Containers[j], "container", item)...)
		}
		for j := range pod.Spec.InitContainers {
			set = append(set, fillContainer(&pod.Spec.InitContainers[j], "init container", item)...)
		}
	}
	return set
}

func fillContainer(c *corev1.Container, what string, item *corev1.LimitRangeItem) []string {
	var set []string
	note := func(names []string, of string) {
		if len(names) > 0 {
			set = append(set, fmt.Sprintf("%s %s for %s %s", strings.Join(names, ", "), of, what, c.Name))
		}
	}
	note(fillList(&c.Resources.Requests, item.DefaultRequest), "request")
	note(fillList(&c.Resources.Limits, item.Default), "limit")
	return set
}

func fillList(list *corev1.ResourceList, defaults corev1.ResourceList) []string {
	var set []string
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		if _, ok := (*list)[name]; ok {
			continue
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = defaults[name].DeepCopy()
		set = append(set, string(name))
	}
	return set
}

func checkPod(pod *corev1.Pod, r *corev1.LimitRange) []error {
	var problems []error
	for i := range r.Spec.Limits {
		check := bounds{&r.Spec.Limits[i]}
		switch check.item.Type {
		case corev1.LimitTypeContainer:
			for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
				for j := range containers {
					problems = append(problems, check.check(containers[j].Resources.Requests, containers[j].Resources.Limits)...)
				}
			}
		case corev1.LimitTypePod:
			requests := amountsOf(&pod.Spec, func(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Requests })
			ceilings := amountsOf(&pod.Spec, func(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Limits })
			problems = append(problems, check.check(requests, ceilings)...)
		}
	}
	return problems
}

// amountsOf returns what a pod has as a whole: the cpu and memory that it states for itself, and of everything
// else what its containers have together. As in Kubernetes, its overhead does not count, and neither do huge
// pages that it states for itself.
func amountsOf(spec *corev1.PodSpec, of func(*corev1.ResourceRequirements) corev1.ResourceList) corev1.ResourceList {
	amounts := podspec.Together(spec, func(c *corev1.Container) corev1.ResourceList { return of(&c.Resources) })
	if spec.Resources == nil {
		return amounts
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if amount, ok := of(spec.Resources)[name]; ok {
			amounts[name] = amount
		}
	}
	return amounts
}

func checkClaim(claim *corev1.PersistentVolumeClaim, r *corev1.LimitRange) []error {
	var problems []error
	for i := range r.Spec.Limits {
		if item := &r.Spec.Limits[i]; item.Type == corev1.LimitTypePersistentVolumeClaim {
			problems = append(problems, bounds{item}.checkRequests(claim.Spec.Resources.Requests)...)
		}
	}
	return problems
}

// bounds checks a pod or claim against one item of a range.
type bounds struct{ item *corev1.LimitRangeItem }

func (b bounds) check(requests, ceilings corev1.ResourceList) []error {
	problems := b.checkMin(requests, ceilings)
	for _, name := range slices.Sorted(maps.Keys(b.item.Max)) {
		most := b.item.Max[name]
		limit, limited := ceilings[name]
		request, requested := requests[name]
		switch {
		case !limited:
			problems = append(problems, fmt.Errorf("maximum %s usage per %s is %s.  No limit is specified", name, b.item.Type, most.String()))
		case limit.Cmp(most) > 0:
			problems = append(problems, fmt.Errorf("maximum %s usage per %s is %s, but limit is %s", name, b.item.Type, most.String(), limit.String()))
		case requested && request.Cmp(most) > 0:
			problems = append(problems, fmt.Errorf("maximum %s usage per %s is %s, but request is %s", name, b.item.Type, most.String(), request.String()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.item.MaxLimitRequestRatio)) {
		problems = append(problems, b.checkRatio(name, requests, ceilings)...)
	}
	return problems
}

func (b bounds) checkMin(requests, ceilings corev1.ResourceList) []error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(b.item.Min)) {
		least := b.item.Min[name]
		request, requested := requests[name]
		limit, limited := ceilings[name]
		switch {
		case !requested:
			problems = append(problems, fmt.Errorf("minimum %s usage per %s is %s.  No request is specified", name, b.item.Type, least.String()))
		case request.Cmp(least) < 0:
			problems = append(problems, fmt.Errorf("minimum %s usage per %s is %s, but request is %s", name, b.item.Type, least.String(), request.String()))
		case limited && limit.Cmp(least) < 0:
			problems = append(problems, fmt.Errorf("minimum %s usage per %s is %s, but limit is %s", name, b.item.Type, least.String(), limit.String()))
		}
	}
	return problems
}

// checkRequests is check for claims, which have no limits.
func (b bounds) checkRequests(requests corev1.ResourceList) []error {
	problems := b.checkMin(requests, nil)
	for _, name := range slices.Sorted(maps.Keys(b.item.Max)) {
		most := b.item.Max[name]
		request, ok := requests[name]
		switch {
		case !ok:
			problems = append(problems, fmt.Errorf("maximum %s usage per %s is %s.  No request is specified", name, b.item.Type, most.String()))
		case request.Cmp(most) > 0:
			problems = append(problems, fmt.Errorf("maximum %s usage per %s is %s, but request is %s", name, b.item.Type, most.String(), request.String()))
		}
	}
	return problems
}

func (b bounds) checkRatio(name corev1.ResourceName, requests, ceilings corev1.ResourceList) []error {
	most := b.item.MaxLimitRequestRatio[name]
	request, limit := requests[name], ceilings[name]
	switch {
	case request.IsZero():
		return []error{fmt.Errorf("%s max limit to request ratio per %s is %s, but no request is specified or request is 0", name, b.item.Type, most.String())}
	case limit.IsZero():
		return []error{fmt.Errorf("%s max limit to request ratio per %s is %s, but no limit is specified or limit is 0", name, b.item.Type, most.String())}
	}
	if ratio := thousandths(limit) / thousandths(request); ratio*1000 > thousandths(most) {
		return []error{fmt.Errorf("%s max limit to request ratio per %s is %s, but provided ratio is %f", name, b.item.Type, most.String(), ratio)}
	}
	return nil
}

// thousandths returns an amount in thousandths, which are whole numbers: 140m is exactly 7 times 20m then, and
// not a little more. Numbers that become too large are approximate.
func thousandths(amount resource.Quantity) float64 {
	if amount.CmpInt64(resource.MaxMilliValue) > 0 {
		return amount.AsApproximateFloat64() * 1000
	}
	return float64(amount.MilliValue())
}
