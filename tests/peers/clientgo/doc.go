// Package clientgo runs informers and listers of adapters/clientgo, which look
// like client-go's, against a real server; tests only.
package clientgo
