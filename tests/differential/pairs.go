package differential

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// topics are the fields that users set most, by what they are about. An expression matches the shape
// of a path, or a part of it.
var topics = map[string]*regexp.Regexp{
	"containers": regexp.MustCompile(`\b(containers|initContainers|ephemeralContainers)\b`),
	"metadata":   regexp.MustCompile(`^metadata\.(name|generateName|finalizers|labels|annotations|ownerReferences)\b`),
	"probes":     regexp.MustCompile(`Probe\b`),
	"volumes":    regexp.MustCompile(`\b(volumes|volumeMounts|volumeDevices|volumeClaimTemplates|volumeName|volumeMode|accessModes)\b`),
	"selectors":  regexp.MustCompile(`(\b[sS]|S)elector\b|\blabels\b`),
	"ports":      regexp.MustCompile(`(\bp|P)orts?\b`),
	"resources":  regexp.MustCompile(`\b(resources|capacity|hard|limits)\b`),
	"strategies": regexp.MustCompile(`(\bs|S)trategy\b|(\bp|P)olicy\b|\b(replicas|parallelism|completions|minReadySeconds|progressDeadlineSeconds|backoffLimit)\b`),
}

// everyTopic stands for all of them.
const everyTopic = "all"

// parseTopics reads names of topics, separated by commas.
func parseTopics(text string) ([]*regexp.Regexp, error) {
	var list []*regexp.Regexp
	for name := range strings.SplitSeq(text, ",") {
		if name == everyTopic {
			for _, topic := range topics {
				list = append(list, topic)
			}
			continue
		}
		topic := topics[name]
		if topic == nil {
			return nil, fmt.Errorf("the topic %q is none of %q, and not %s", name, slices.Sorted(maps.Keys(topics)), everyTopic)
		}
		list = append(list, topic)
	}
	return list, nil
}

// defaultPairs is how many pairs are asked unless a number says it.
const defaultPairs = 1000

// topicPairs returns requests with two fields of topics: n of them as the seed decides, as far as there
// are as many.
func topicPairs(objects []*object, verbs []string, seed uint64, n int, of []*regexp.Regexp) []*request {
	if n <= 0 {
		n = defaultPairs
	}
	byObject := map[*object][]*request{}
	var some []*object // with something to choose from
	for _, o := range objects {
		for _, verb := range verbs {
			if applies(verb, o) && !isSequence(verb) && verb != readBack {
				byObject[o] = append(byObject[o], slices.DeleteFunc(singles(verb, o), func(r *request) bool { return !about(r, of) })...)
			}
		}
		if len(byObject[o]) > 0 {
			some = append(some, o)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return versioned(pairs(some, byObject, rand.New(rand.NewPCG(seed, 0)), n))
}

// about reports whether all fields of a request belong to topics.
func about(r *request, of []*regexp.Regexp) bool {
	return !slices.ContainsFunc(r.edits, func(e edit) bool {
		return !slices.ContainsFunc(of, func(topic *regexp.Regexp) bool { return topic.MatchString(e.at.shape()) })
	})
}
