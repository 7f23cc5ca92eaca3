// Package ui serves the page at /ui: its files, which are public, and what browsers need that
// have no client certificate: sessions that begin with a one-time link. All data of the page
// come from the API, with the rights of its user.
//
// A session is a cookie that scripts cannot read, and that counts only beside a header that a
// page of another origin cannot send (Header), from an address of the same machine. It ends
// after hours, and with the server.
package ui
