package reporter

import (
	"context"
	"time"
)

// Part is a part of the time that a request takes.
type Part uint8

// The parts, and their number.
const (
	Authentication Part = iota
	Impersonation
	Authorization
	QueueWait // for seats
	MutatingWebhook
	ValidatingWebhook
	Storage       // reads and writes of the store
	Serialization // of the answer; what is sent meanwhile included
	ResponseWrite
	Parts
)

// Timer is a Reporter that is told how long the parts of its request take. It is called
// concurrently.
type Timer interface {
	// KeepsTimes reports whether Took is of use.
	KeepsTimes() bool
	// Took adds what a part has taken.
	Took(part Part, d time.Duration)
}

// Measurement is a part that has begun. The zero value measures nothing.
type Measurement struct {
	timer Timer
	part  Part
	began time.Time
}

// Measure begins a part of the context's request. It costs a look into the context if nobody
// wants to know.
func Measure(ctx context.Context, part Part) Measurement {
	timer, ok := From(ctx).(Timer)
	if !ok {
		return Measurement{}
	}
	return Begin(timer, part)
}

// Begin begins a part of the timer's request.
func Begin(timer Timer, part Part) Measurement {
	if !timer.KeepsTimes() {
		return Measurement{}
	}
	return Measurement{timer, part, time.Now()}
}

// End reports how long the part has taken.
func (m Measurement) End() {
	if m.timer != nil {
		m.timer.Took(m.part, time.Since(m.began))
	}
}
