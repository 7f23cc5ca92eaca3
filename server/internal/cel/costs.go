package cel

import (
	"math"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/library"
)

// costs says what calls of functions cost. The functions on lists and sets of cel-go bring
// their costs as options of a Program; the others are those of Kubernetes.
type costs struct{}

// The costs of one call, of making a list, and of a character of a string.
const (
	callCost      = 1
	listCost      = 10
	characterCost = 0.1
)

// CallCost implements interpreter.ActualCostEstimator.
func (costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	switch overload {
	case "list_slice", "lists_range", "list_reverse":
		return newListCost(1, size(result))
	case "list_flatten":
		return newListCost(1, size(args[0]))
	case "list_flatten_int":
		depth, _ := args[1].(types.Int)
		return newListCost(math.Max(float64(depth), -1), size(args[0]))
	case "list_distinct":
		return comparisonCost(args[0])
	case "list_sets_contains_list", "list_sets_intersects_list":
		return cost(1, size(args[0]), size(args[1]), callCost)
	case "list_sets_equivalent_list":
		return cost(2, size(args[0]), size(args[1]), callCost)
	}
	switch {
	case strings.HasPrefix(overload, "list_") && strings.HasSuffix(overload, "_sort"):
		return comparisonCost(args[0])
	case strings.HasPrefix(overload, "list_") && strings.HasSuffix(overload, "_sortByAssociatedKeys"):
		return comparisonCost(args[1])
	}
	return estimator.CallCost(function, overload, args, result)
}

var estimator = &library.CostEstimator{}

func size(v ref.Val) uint64 {
	if s, ok := v.(traits.Sizer); ok {
		if n, ok := s.Size().(types.Int); ok && n >= 0 {
			return uint64(n)
		}
	}
	return 1
}

// comparisonCost is that of a new list made by comparing each two elements of a list.
func comparisonCost(list ref.Val) *uint64 {
	factor, n := 2.0, size(list)
	if l, ok := list.(traits.Lister); ok && n > 0 {
		if t := l.Get(types.IntZero).Type(); t == types.StringType || t == types.BytesType {
			factor += characterCost
		}
	}
	return cost(factor, n, n, callCost+listCost)
}

// newListCost is that of a new list for which n elements were each visited factor times.
func newListCost(factor float64, n uint64) *uint64 {
	if factor < 0 {
		factor = 1
	}
	return cost(factor, n, 1, callCost+listCost)
}

// cost is factor*a*b+base, or the largest number.
func cost(factor float64, a, b uint64, base uint64) *uint64 {
	sum := factor*float64(a)*float64(b) + float64(base)
	result := uint64(math.MaxUint64)
	if sum < math.MaxInt64 {
		result = uint64(sum)
	}
	return &result
}
