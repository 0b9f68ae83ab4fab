/** As a file does whose import is not there. */
throw new Error("thrown on import");
