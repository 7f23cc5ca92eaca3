package codec

import "bytes"

// jsonIndex knows the objects and arrays of a document, in the order in which
// they begin, so that each can be skipped, compared as a whole, and given
// memory of the right size.
type jsonIndex struct {
	nodes []jsonNode
	open  []int // nodes that have not ended, while the index is made
}

type jsonNode struct {
	end   int // behind the closing bracket
	next  int // the node that begins after it
	count int // members or elements
}

// index makes the index of a document, which must be valid JSON. The memory is
// that of the document before.
func (x *jsonIndex) index(doc []byte) {
	x.nodes, x.open = x.nodes[:0], x.open[:0]
	var last byte // before the current one, without white space
	for i := 0; i < len(doc); i++ {
		c := doc[i]
		switch c {
		case '"':
			i = stringEnd(doc, i) - 1
		case '{', '[':
			x.open = append(x.open, len(x.nodes))
			x.nodes = append(x.nodes, jsonNode{})
		case ',':
			x.nodes[x.open[len(x.open)-1]].count++
		case '}', ']':
			node := &x.nodes[x.open[len(x.open)-1]]
			x.open = x.open[:len(x.open)-1]
			if last != '{' && last != '[' {
				node.count++
			}
			node.end, node.next = i+1, len(x.nodes)
		case ' ', '\t', '\r', '\n':
			continue
		}
		last = c
	}
}

// stringEnd returns what is behind the string that begins at start.
func stringEnd(doc []byte, start int) int {
	for i := start + 1; ; {
		i += bytes.IndexByte(doc[i:], '"')
		escapes := 0
		for doc[i-1-escapes] == '\\' {
			escapes++
		}
		i++
		if escapes%2 == 0 {
			return i
		}
	}
}
