package conformance

import (
	"encoding/json"
	"fmt"
	"time"
)

var selectionGuarantees = []Guarantee{
	{Name: "select/enter-is-added", Source: sourceConcepts, check: checkEnter,
		Sentence: "An object that begins to match a watch's selector is ADDED to it."},
	{Name: "select/stay-is-modified", Source: sourceConcepts, check: checkStay,
		Sentence: "An object that matched and still does is MODIFIED."},
	{Name: "select/leave-is-deleted", Source: sourceObserved, check: checkLeave,
		Sentence: "An object that no longer matches is DELETED with its previous content and the version of the change."},
	{Name: "select/deleted", Source: sourceConcepts, check: checkSelectedDeleted,
		Sentence: "A matching object that is deleted is DELETED with its last content and the version of the deletion."},
	{Name: "select/outside-is-silent", Source: sourceConcepts, check: checkOutside,
		Sentence: "What never matches is never shown."},
	{Name: "select/field-transition", Source: sourceConcepts, check: checkFieldTransition,
		Sentence: "Field selectors have the same transitions: a pod enters status.phase=Running when it runs."},
}

// selected opens a watch of color=red behind all that has happened.
func (e *Env) selected(at object) *watcher {
	return e.watch("labelSelector=color%3Dred&resourceVersion=" + at.version())
}

func checkEnter(e *Env) {
	w := e.selected(e.create("a", "color=blue"))
	written := e.update("a", "2", "color=red")
	if v := w.expect("ADDED", "a"); v.Object.version() != written.version() || v.Object.Data["content"] != "2" {
		e.failf("ADDED shows content %v at %s, written was 2 at %s", v.Object.Data, v.Object.version(), written.version())
	}
}

func checkStay(e *Env) {
	w := e.selected(e.create("a", "color=red"))
	written := e.update("a", "2", "color=red")
	if v := w.expect("MODIFIED", "a"); v.Object.version() != written.version() || v.Object.Data["content"] != "2" {
		e.failf("MODIFIED shows content %v at %s, written was 2 at %s", v.Object.Data, v.Object.version(), written.version())
	}
}

func checkLeave(e *Env) {
	w := e.selected(e.create("a", "color=red"))
	written := e.update("a", "2", "color=blue")
	v := w.expect("DELETED", "a")
	if v.Object.version() != written.version() {
		e.failf("DELETED has version %s, the change had %s", v.Object.version(), written.version())
	}
	if v.Object.Data["content"] != "1" || v.Object.Metadata.Labels["color"] != "red" {
		e.failf("DELETED does not show the previous content: %s", v.Raw)
	}
}

func checkSelectedDeleted(e *Env) {
	made := e.create("a", "color=red")
	w := e.selected(made)
	e.delete("a")
	v := w.expect("DELETED", "a")
	if !later(e, v.Object.version(), made.version()) || v.Object.Data["content"] != "1" || v.Object.Metadata.Labels["color"] != "red" {
		e.failf("made at %s; DELETED shows %s", made.version(), v.Raw)
	}
}

func checkOutside(e *Env) {
	w := e.selected(e.create("a", "color=blue"))
	e.update("a", "2", "color=green")
	e.delete("a")
	e.create("b", "color=red")
	w.expect("ADDED", "b")
}

func checkFieldTransition(e *Env) {
	made := e.createPod("a")
	w := e.watchAt(e.pods() + "?watch=true&fieldSelector=status.phase%3DRunning&resourceVersion=" + made.version())
	phase := func(name string) object {
		answer := e.patch(e.pods()+"/a/status", `{"status":{"phase":"`+name+`"}}`)
		if answer.code != 200 {
			e.skipf("the status of pods cannot be written here: %s", answer)
		}
		var written object
		e.must(answer.decode(&written))
		return written
	}
	entered := phase("Running")
	if v := w.expect("ADDED", "a"); v.Object.version() != entered.version() {
		e.failf("ADDED has version %s, the change had %s", v.Object.version(), entered.version())
	}
	left := phase("Succeeded")
	v := w.expect("DELETED", "a")
	if v.Object.version() != left.version() || phaseOf(v) != "Running" {
		e.failf("DELETED shows phase %s at %s; the pod left Running at %s", phaseOf(v), v.Object.version(), left.version())
	}
}

func phaseOf(v event) string {
	var pod struct{ Status struct{ Phase string } }
	if err := json.Unmarshal(v.Raw, &pod); err != nil {
		return fmt.Sprint(err)
	}
	return pod.Status.Phase
}

var shardGuarantees = []Guarantee{
	{Name: "shard/list", Source: sourceShards, check: checkShardList,
		Sentence: "shardSelector divides a list by a hash of the uid: every object is in one of the halves, and metadata.shardInfo echoes the selector."},
	{Name: "shard/watch", Source: sourceShards, check: checkShardWatch,
		Sentence: "Watches of two halves together show every event once."},
}

var halves = []string{
	"shardRange%28object.metadata.uid%2C%270x0000000000000000%27%2C%270x8000000000000000%27%29",
	"shardRange%28object.metadata.uid%2C%270x8000000000000000%27%2C%270x10000000000000000%27%29",
}

// needShards skips the check where the server knows no shards: such a server
// ignores the parameter, or refuses it.
func (e *Env) needShards() {
	answer := e.get(e.configMaps() + "?shardSelector=" + halves[0])
	var seen list
	if answer.code != 200 || answer.decode(&seen) != nil || seen.Metadata.ShardInfo == nil {
		e.skipf("the server does not shard lists: %d without metadata.shardInfo", answer.code)
	}
}

func checkShardList(e *Env) {
	e.needShards()
	e.createSome("p", 16)
	count := map[string]int{}
	for _, half := range halves {
		seen := e.list("shardSelector=" + half)
		if seen.Metadata.ShardInfo == nil || seen.Metadata.ShardInfo.Selector == "" {
			e.failf("the list of %s has no shardInfo", half)
		}
		for _, name := range seen.names() {
			count[name]++
		}
	}
	for _, name := range e.list("").names() {
		if count[name] != 1 {
			e.failf("%s is in %d of the two halves", name, count[name])
		}
	}
}

func checkShardWatch(e *Env) {
	e.needShards()
	at := e.create("a").version()
	type seen struct {
		from int
		v    event
	}
	arrived := make(chan seen)
	for i, half := range halves {
		w := e.watch("shardSelector=" + half + "&resourceVersion=" + at)
		go func() {
			for v := range w.events {
				select {
				case arrived <- seen{i, v}:
				case <-e.ctx.Done():
					return
				}
			}
		}()
	}
	e.createSome("p", 16)
	count, from := map[string]int{}, map[int]int{}
	within := e.limit()
	timer := time.NewTimer(within)
	defer timer.Stop()
	for range 16 {
		select {
		case s := <-arrived:
			count[s.v.Object.Metadata.Name]++
			from[s.from]++
		case <-timer.C:
			e.late(within, "of 16 creations, %d were shown within %s", len(count), roundTime(within))
		case <-e.ctx.Done():
			e.must(e.ctx.Err())
		}
	}
	if len(count) != 16 || len(from) != 2 {
		e.failf("16 creations were shown as %v, by half: %v", count, from)
	}
}
