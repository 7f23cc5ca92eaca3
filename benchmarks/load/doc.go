// Package load drives API servers so cheaply that the server is what is
// measured. Its connection speaks TLS and HTTP/2, is written for reading, and
// knows nothing that a load generator does not need: frames are looked at where
// they were decrypted, windows are so large that they hardly ever need to be
// opened, and what arrives is given to a callback without copy or allocation.
// On it are built a crowd of watchers that check what they are sent, and a
// writer that keeps to its rate whatever the server does.
//
// The same code drives every server that is compared.
package load
