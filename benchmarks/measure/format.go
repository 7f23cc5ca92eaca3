package measure

import (
	"fmt"
	"slices"
	"strconv"
)

// Median is the middle of some values, or the mean of the two in the middle; 0
// if there are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	values = slices.Sorted(slices.Values(values))
	n := len(values)
	if n%2 == 1 {
		return values[n/2]
	}
	return (values[n/2-1] + values[n/2]) / 2
}

// Times writes how many times something is better.
func Times(ratio float64) string {
	if ratio >= 9.95 {
		return fmt.Sprintf("%.0f×", ratio)
	}
	return fmt.Sprintf("%.1f×", ratio)
}

// Number writes a value with three digits that matter.
func Number(v float64) string {
	switch {
	case v >= 100:
		return grouped(fmt.Sprintf("%.0f", v))
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// Grouped writes a number with a comma between thousands.
func Grouped(n int) string { return grouped(strconv.Itoa(n)) }

// grouped writes a comma between thousands.
func grouped(digits string) string {
	for n := len(digits) - 3; n > 0; n -= 3 {
		digits = digits[:n] + "," + digits[n:]
	}
	return digits
}
