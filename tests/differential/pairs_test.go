package differential

import (
	"regexp"
	"strings"
	"testing"
)

func TestPairsOfTopics(t *testing.T) {
	c, k := widgets(t)
	of := []*regexp.Regexp{topics["ports"], regexp.MustCompile("size")}
	list := topicPairs([]*object{widget(t, k)}, []string{create, update}, 1, 20, of)
	if len(list) != 20 {
		t.Errorf("%d requests in place of 20", len(list))
	}
	for _, r := range list {
		if len(r.edits) != 2 {
			t.Errorf("not a pair: %v", r)
		}
		for _, e := range r.edits {
			if shape := e.at.shape(); !strings.Contains(shape, "port") && !strings.Contains(shape, "size") {
				t.Errorf("%v is not about ports or sizes", r)
			}
		}
		if _, err := parseRequest(c, r.String()); err != nil {
			t.Error(err)
		}
	}
	if again := topicPairs([]*object{widget(t, k)}, []string{create, update}, 1, 20, of); strings.Join(names(again), "\n") != strings.Join(names(list), "\n") {
		t.Error("the same seed makes other requests")
	}
	if none := topicPairs([]*object{widget(t, k)}, []string{create}, 1, 20, of[:0:0]); len(none) > 0 {
		t.Errorf("pairs of nothing: %v", none)
	}
	if _, err := parseTopics("ports,nothing"); err == nil {
		t.Error("a topic that there is not was accepted")
	}
	if all, err := parseTopics(everyTopic); err != nil || len(all) != len(topics) {
		t.Errorf("%d topics: %v", len(all), err)
	}
}
