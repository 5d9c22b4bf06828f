"""The operating system: signals and processes, files of a folder that is not trusted, imports, the terminal."""
