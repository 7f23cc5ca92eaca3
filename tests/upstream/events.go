package upstream

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// eventsPause is how long checkEvents waits before it reads the events again.
const eventsPause = 200 * time.Millisecond

// checkEvents waits until the reasons of events in a namespace about objects of a kind are those that the arguments name after the
// kind, and returns an error if there is another one. A reason with ? behind it may be there or not: whether it is depends on
// which component comes first. How many events there are, of how many objects, does as well.
//
// Components send events without waiting for them. Where faults break connections, some are lost, and nothing is checked.
func (k *kubectl) checkEvents(ctx context.Context, namespace, arguments string) error {
	if k.eventsLost {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	words := strings.Fields(arguments)
	if len(words) < 2 {
		return fmt.Errorf("events %s: it is a kind, and reasons", arguments)
	}
	for {
		var events corev1.EventList
		if err := k.read(ctx, namespace, &events, "get", "events", "--field-selector=involvedObject.kind="+words[0]); err != nil {
			return err
		}
		missing, others := compareReasons(events.Items, words[1:])
		if len(others) > 0 {
			return fmt.Errorf("events %s: others are %s", arguments, strings.Join(others, ", "))
		}
		if len(missing) == 0 { //ZZ
			return nil
		}
		select {
		case <-time.After(eventsPause):
		case <-ctx.Done():
			return fmt.Errorf("events %s: none is %s: %w", arguments, strings.Join(missing, ", "), ctx.Err())
		}
	}
}

// compareReasons returns which reasons no event has, and which others events have.
func compareReasons(events []corev1.Event, reasons []string) (missing, others []string) {
	for _, reason := range reasons {
		required := !strings.HasSuffix(reason, "?")
		if required && !slices.ContainsFunc(events, func(e corev1.Event) bool { return e.Reason == reason }) {
			missing = append(missing, reason)
		}
	}
	for _, e := range events {
		if !slices.Contains(reasons, e.Reason) && !slices.Contains(reasons, e.Reason+"?") && !slices.Contains(others, e.Reason) {
			others = append(others, e.Reason)
		}
	}
	return missing, others
}
