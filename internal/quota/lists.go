package quota

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Mask returns the amounts of list that names has too. The result is the caller's.
func Mask(list, names corev1.ResourceList) corev1.ResourceList {
	masked := corev1.ResourceList{}
	for name, amount := range list {
		if _, ok := names[name]; ok {
			masked[name] = amount.DeepCopy()
		}
	}
	return masked
}

// Add adds more to sum, which it changes.
func Add(sum, more corev1.ResourceList) {
	for name, amount := range more {
		total, ok := sum[name]
		if !ok {
			sum[name] = amount.DeepCopy()
			continue
		}
		total = total.DeepCopy()
		total.Add(amount)
		sum[name] = total
	}
}

// Subtract takes less from those amounts of sum that both have; sum is changed, and no
// amount gets less than 0.
func Subtract(sum, less corev1.ResourceList) {
	for name, amount := range less {
		total, ok := sum[name]
		if !ok {
			continue
		}
		total = total.DeepCopy()
		total.Sub(amount)
		if total.Sign() < 0 {
			total = resource.Quantity{Format: total.Format}
		}
		sum[name] = total
	}
}

// Increase returns by how much each amount of list is above that of base. Amounts that
// are not above it are left out.
func Increase(list, base corev1.ResourceList) corev1.ResourceList {
	increase := corev1.ResourceList{}
	for name, amount := range list {
		amount = amount.DeepCopy()
		amount.Sub(base[name])
		if amount.Sign() > 0 {
			increase[name] = amount
		}
	}
	return increase
}

// Exceeding returns the names of the amounts that are above those of most, sorted.
// Amounts that most does not have are not limited.
func Exceeding(list, most corev1.ResourceList) []corev1.ResourceName {
	var names []corev1.ResourceName
	for name, amount := range list {
		if limit, ok := most[name]; ok && amount.Cmp(limit) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Negative returns the names of the amounts that are below 0, sorted.
func Negative(list corev1.ResourceList) []corev1.ResourceName {
	var names []corev1.ResourceName
	for name, amount := range list {
		if amount.Sign() < 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Equal reports whether two lists have the same names and amounts.
func Equal(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// Format writes the named amounts as Kubernetes' messages do: cpu=2,pods=3.
func Format(list corev1.ResourceList, names []corev1.ResourceName) string {
	parts := make([]string, 0, len(names))
	for _, name := range names {
		if amount, ok := list[name]; ok {
			parts = append(parts, string(name)+"="+amount.String())
		}
	}
	return strings.Join(parts, ",")
}

// FormatNames writes names with commas between them.
func FormatNames(names []corev1.ResourceName) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = string(name)
	}
	return strings.Join(parts, ",")
}
