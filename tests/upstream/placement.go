package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// checkPlacement returns an error unless pods are on the nodes on which the arguments say that they are: a label selector
// of pods, a label of nodes, and VALUE=N, or VALUE=FROM..TO, for how many of the pods are on nodes whose label has the
// value. Pods that are being deleted do not count.
func (k *kubectl) checkPlacement(ctx context.Context, namespace, arguments string) error {
	words := strings.Fields(arguments)
	if len(words) < 3 {
		return fmt.Errorf("placed %s: it is a label selector, a label of nodes, and how many pods there are for its values", arguments)
	}
	var nodes corev1.NodeList
	var pods corev1.PodList
	if err := k.read(ctx, "", &nodes, "get", "nodes"); err != nil {
		return err
	}
	if err := k.read(ctx, namespace, &pods, "get", "pods", "-l", words[0]); err != nil {
		return err
	}
	counts := countByLabel(nodes.Items, pods.Items, words[1])
	for _, word := range words[2:] {
		value, want, _ := strings.Cut(word, "=")
		least, most, err := readRange(want)
		if err != nil {
			return fmt.Errorf("placed %s: %w", arguments, err)
		}
		if count := counts[value]; count < least || count > most {
			return fmt.Errorf("placed %s: of the pods that are %s, %d are where %s is %s, and all are so: %v", arguments, words[0], count, words[1], value, counts)
		}
	}
	return nil
}

// read has kubectl print JSON, and decodes it.
func (k *kubectl) read(ctx context.Context, namespace string, into any, args ...string) error {
	printed, err := k.run(ctx, namespace, append(args, "-o", "json")...)
	if err != nil {
		return err
	}
	return json.Unmarshal(printed, into)
}

// countByLabel counts pods by a label of their nodes.
func countByLabel(nodes []corev1.Node, pods []corev1.Pod, label string) map[string]int {
	values := map[string]string{}
	for _, node := range nodes {
		values[node.Name] = node.Labels[label]
	}
	counts := map[string]int{}
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			counts[values[pod.Spec.NodeName]]++
		}
	}
	return counts
}

// readRange reads N, or FROM..TO.
func readRange(text string) (least, most int, err error) {
	from, to, isRange := strings.Cut(text, "..")
	if least, err = strconv.Atoi(from); err != nil || !isRange {
		return least, least, err
	}
	most, err = strconv.Atoi(to)
	return least, most, err
}
