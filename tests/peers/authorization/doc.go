// Package authorization has client-go's clients work with the rights of users: the roles
// edit and view, and an informer whose right is withdrawn and given again. It has only
// tests.
package authorization
