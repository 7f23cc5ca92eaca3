package plot

import (
	"fmt"
	"math"
	"strconv"
)

// axis maps values to places between from and to, in pixels.
type axis struct {
	log       bool
	low, high float64 // the values at its ends
	from, to  float64
	ticks     []float64
}

// newAxis makes an axis on which all values have a place. A linear one begins at
// zero: what is compared is how much, not where.
func newAxis(log bool, from, to float64, values []float64) (axis, error) {
	a := axis{log: log, from: from, to: to}
	if len(values) == 0 {
		return a, fmt.Errorf("a chart needs points")
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || log && v == 0 {
			return a, fmt.Errorf("%g has no place on the axis (logarithmic: %t)", v, log)
		}
		low, high = min(low, v), max(high, v)
	}
	if log {
		a.logarithmic(low, high)
	} else {
		a.linear(high)
	}
	return a, nil
}

const mostTicks = 6

// linear has ticks at multiples of 1, 2 or 5 times a power of ten.
func (a *axis) linear(high float64) {
	if high == 0 {
		high = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(high)))
	for _, smaller := range []float64{0.1, 0.2, 0.5, 1, 2} {
		if s := step * smaller; high/s <= mostTicks {
			step = s
			break
		}
	}
	a.high = math.Ceil(high/step-1e-9) * step
	for i := 0; float64(i)*step <= a.high*(1+1e-9); i++ {
		a.ticks = append(a.ticks, float64(i)*step)
	}
}

// logarithmic has ticks at powers of ten, or at 1, 2 and 5 times them if there
// would be few.
func (a *axis) logarithmic(low, high float64) {
	first, last := math.Floor(math.Log10(low)+1e-9), math.Ceil(math.Log10(high)-1e-9)
	if first == last {
		last++
	}
	marks := []float64{1}
	if last-first <= 2 {
		marks = []float64{1, 2, 5}
	}
	every := math.Ceil((last - first) / (2 * mostTicks))
	for e := first; e <= last; e += every {
		for _, m := range marks {
			a.ticks = append(a.ticks, m*math.Pow(10, e))
		}
	}
	// The ends are the ticks around the values.
	for len(a.ticks) > 2 && a.ticks[1] <= low*(1+1e-9) {
		a.ticks = a.ticks[1:]
	}
	for n := len(a.ticks); n > 2 && a.ticks[n-2] >= high*(1-1e-9); n-- {
		a.ticks = a.ticks[:n-1]
	}
	a.low, a.high = a.ticks[0], max(a.ticks[len(a.ticks)-1], high)
}

// at is where a value is.
func (a *axis) at(v float64) float64 {
	share := v / a.high
	if a.log {
		share = math.Log(v/a.low) / math.Log(a.high/a.low)
	}
	return a.from + share*(a.to-a.from)
}

// number writes a value as short as it can be read: 0.25, 1500, 20k, 3M.
func number(v float64) string {
	unit := ""
	switch {
	case v >= 1e9:
		v, unit = v/1e9, "G"
	case v >= 1e6:
		v, unit = v/1e6, "M"
	case v >= 1e4:
		v, unit = v/1e3, "k"
	}
	// Four digits are more than a picture shows.
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		short = v
	}
	return strconv.FormatFloat(short, 'f', -1, 64) + unit
}
