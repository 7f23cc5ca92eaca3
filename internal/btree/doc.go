// Package btree is a persistent, ordered map with string keys: a B+ tree
// whose nodes are never modified once a Tree holds them. A Tree is a value;
// changing one copies the path from the root to a leaf and shares the rest, so
// that keeping an old version costs only the nodes that differ. Every node
// knows how many entries are below it, which makes counting a range as cheap
// as finding its ends, and a bound of the stamps below it, which makes finding
// changed entries cheap if few have changed.
package btree
